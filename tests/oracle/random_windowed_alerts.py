"""Random files of SQL with alerts over hopping or tumbling windows of one to three streams."""

from __future__ import annotations

from tests.oracle.random_alerts import RandomFile


class WindowedFile(RandomFile):
    """As `RandomFile`, the first alert and most others over windows."""

    def _alert(self, name: str) -> str:
        r = self.random
        if name != "q0" and r.random() < 0.3:
            return super()._alert(name)
        size = r.choice((1, 2, 2, 2, 2, 3, 3))
        aliases = ["a", "b", "c"][:size]
        sources = [r.choice([*self.streams, *self.derived]) for _ in aliases]
        if size == 1:
            self.alone |= {self.derived.get(source, source) for source in sources}
        slide = r.choice((1, 2, 3, 4, 7))
        panes = r.choice((1, 1, 2, 3, 5)) if size < 3 else r.choice((1, 1, 2))
        offset = r.choice((0, 0, 0, 1, -2, 5))
        where = self._keys(aliases)
        for i in range(1, size):
            column = r.choice(("window_start", "window_end"))
            x, y = r.sample((aliases[r.randrange(i)], aliases[i]), 2)
            where.append(f"{x}.{column} = {y}.{column}")
        if r.random() < 0.15:
            where += self._bounds(aliases)
        where += [self._filter(alias) for alias in aliases if r.random() < 0.2]
        where.append(self._threshold(aliases))
        if size > 1 and r.random() < 0.1:
            x, y = r.sample(aliases, 2)
            where.append(r.choice((f"{x}.n <> {y}.n", f"{x}.w < {y}.w", f"{x}.m = {y}.n")))
        select = ", ".join(f"{alias}.ts AS ts_{alias}, {alias}.x AS x_{alias}" for alias in aliases)
        select += f", {r.choice(aliases)}.window_start, {r.choice(aliases)}.window_end AS until"
        options = ["allow_unbounded = true"]
        if r.random() < 0.25:
            options.append(f"max_delay = '{r.choice((0, 1, 3, 10)) * self.tick} us'")
        tables = ", ".join(
            f"{self._windows(source, slide, panes, offset)} {alias}"
            for source, alias in zip(sources, aliases, strict=True)
        )
        return (
            f"CREATE ALERT {name} WITH ({', '.join(options)}) AS\n"
            f"SELECT {select}\nFROM {tables}\nWHERE " + "\n  AND ".join(where)
        )

    def _windows(self, stream: str, slide: int, panes: int, offset: int) -> str:
        size = self._interval(slide * panes)
        if offset:
            size += f", {'-' if offset < 0 else ''}{self._interval(abs(offset))}"
        if panes == 1 and self.random.random() < 0.7:
            return f"TUMBLE({stream}, ts, {size})"
        return f"HOP({stream}, ts, {self._interval(slide)}, {size})"
