"""The chain of cuts of one topic in one run of a shard, and its counterpart for topics of raw tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.model.cuts.terms import INF, ChainCommit, Cut, RawCommit, Reading, Record, pane_start

if TYPE_CHECKING:
    from tests.model.cuts.run import Run


class Chain:
    """`c` and `W` are of the last cut that Kafka has, `cut` is the one under way, and `open` has the readings
    by number that no cut has taken. `built`: the records of `cut` were made.
    """

    def __init__(self, run: Run, topic: int, commit: ChainCommit) -> None:
        self.run, self.topic = run, topic
        self.since, self.done, self.c = commit.since, commit.done, commit.c
        self.W = commit.W if run.on("floor_W") else -INF
        self.cut, self.built = commit.cut, False
        self.open: dict[int, Reading] = {}
        self.stuck = False
        self._told: tuple[float, int] | None = None
        self._again = 0  # the number that the next cut has if it isn't new
        if self.cut and not run.on("same_cut"):
            self._again, self.cut = self.cut.n, None

    def settled(self) -> bool:
        """Kafka has all records of the cut."""
        sent = not any(record.kind == "cut" and record.topic == self.topic for _, record in self.run.out)
        return self.cut is None or (self.built and sent)

    def replayed(self) -> bool:
        """All readings before the last cut's offset were read again."""
        return self.run.next >= self.c or not self.run.on("cut_after_replay")

    def offset(self, reading: Reading) -> int:
        """Readings of earlier sources are before all offsets."""
        return reading.offset if reading.source == self.run.source else -1

    # ---- readings and cuts

    def take(self, reading: Reading) -> None:
        """Take a reading, unless a cut has sent it."""
        sent = reading.offset < (self.done if self.run.on("own_done") else self.since)
        sent |= self.run.on("skip_sent") and reading.offset < self.c and reading.time < self.W
        if not sent:
            self.open[reading.number] = reading

    def _comes(self, cut: Cut) -> bool:
        """Readings of the cut are still to be read."""
        return self._mine(cut) and (self.run.next < cut.c or self.stuck)

    def _mine(self, cut: Cut) -> bool:
        """The offset of the cut is one of the present source."""
        return cut.source == self.run.source or not self.run.on("anew_cut")

    def _takes(self, cut: Cut, reading: Reading) -> bool:
        """The cut has the reading."""
        source = cut.source if self.run.on("anew_cut") else self.run.source
        before = (reading.source, reading.offset) < (source, cut.c)
        return before and (cut.full or reading.time < cut.W)

    def build(self) -> None:
        """Make the records of the cut if all readings before its offset were read."""
        run, cut = self.run, self.cut
        if cut is None or self.built or (run.on("replay_first") and self._comes(cut)):
            return
        self.built = True
        version = cut.version if run.on("version_of_cut") else run.plan.version
        bounds = (run.source, self.c, self.W), (cut.source, cut.c, cut.W)
        n = cut.n if run.on("number") else cut.c
        n += 0 if run.on("anew_place") else 1000 * run.source
        records = []
        for (partition, part), rows in sorted(self._parts(cut).items()):
            place = n, part if run.on("part_order") else 0
            records.append(
                (partition, run.record("cut", self.topic, version, place=place, rows=rows, bounds=bounds))
            )
        run.out = run.out + records if run.on("progress_behind") else records
        self.tell(cut.W, version, ahead=not run.on("progress_behind"))

    def _parts(self, cut: Cut) -> dict[tuple[int, int], dict[tuple[float, int], list[int]]]:
        """The rows of the cut by partition and part; its readings aren't open any more."""
        run, partitions = self.run, self.run.fleet.partitions
        queries = run.plan.serves(self.topic, run.version)
        parts = cut.parts if run.on("fixed_parts") else run.fleet.r.choice((1, 2, 3))
        rows: dict[tuple[int, int], dict[tuple[float, int], list[int]]] = {}
        for number, reading in list(self.open.items()):
            if self._takes(cut, reading):
                del self.open[number]
                if queries:
                    where = reading.group % partitions, (reading.group // partitions) % parts
                    row = pane_start(reading.time, queries), reading.group
                    rows.setdefault(where, {}).setdefault(row, []).append(number)
        return rows

    def tell(self, W: float, version: int, *, ahead: bool = False) -> None:
        """Send progress to all partitions if there is any."""
        run = self.run
        W = W if run.on("progress_cut") else run.watermark
        if self._told != (W, version) and W > -INF:
            self._told = W, version
            run.send_progress(self.topic, W, version, ahead=ahead)

    def tell_again(self) -> None:
        """Send progress under the new version even if it is as before."""
        self._told = None

    # ---- commits

    def adopt(self) -> None:
        """Kafka has the cut: it is the last one."""
        if self.cut:
            self.c, self.W = self.cut.c if self._mine(self.cut) else 0, self.cut.W
            self.cut = None

    def propose(self, change: bool) -> ChainCommit:
        """The chain's part of the next commit: with the cut that waits, or perhaps with a new one. `change`:
        the queries change, so all open readings must be sent.
        """
        run, r = self.run, self.run.fleet.r
        waits = self.cut is not None and (not self.built or (not self.settled() and run.on("one_pending")))
        if waits:
            return ChainCommit(self.since, self.done, self.c, self.W, self.cut)
        self.adopt()
        wish = r.choice((run.watermark, run.watermark, run.watermark - r.randint(0, 4)))
        W = max(self.W, run.watermark if run.fleet.calm else wish)
        full = r.random() < 0.2 or change
        behind = any(reading.time < W for reading in self.open.values())
        useful = bool(self.open) if change else W > self.W or behind or full
        offsets = [self.offset(reading) for reading in self.open.values()]
        first = min((offset for offset in offsets if offset >= 0), default=run.next)
        # What is read again for other topics doesn't take it back.
        self.done = max(self.done, first if run.on("done_back") else run.next)
        if not (useful and self.replayed() and (change or run.fleet.calm or r.random() < 0.7)):
            return ChainCommit(self.since, self.done, self.c, self.W)
        n, self._again = self._again or run.next_number(), 0
        cut = Cut(n, run.next, W, full, r.choice((1, 1, 2, 3)), run.version, run.source)
        if not run.on("commit_first"):
            self.use(cut)
        return ChainCommit(self.since, self.done, self.c, self.W, cut)

    def committed(self, commit: ChainCommit) -> None:
        """The commit is durable: its cut may be sent."""
        if commit.cut is None:
            self.tell(commit.W, self.run.version)
        elif self.run.on("commit_first") and (self.cut is None or commit.cut.n != self.cut.n):
            self.use(commit.cut)

    def use(self, cut: Cut) -> None:
        self.cut, self.built = cut, False
        self.build()

    # ---- sources that lose readings

    def jumped(self, before: int) -> None:
        """Reading goes on behind readings that the source has deleted."""
        if self.cut and not self.built and before < self.cut.c <= self.run.next:
            self.stuck = not self.run.on("gap_builds")
        self.build()

    def source_begins(self) -> None:
        """Offsets begin again at 0."""
        self.since = self.done = 0
        if self.run.on("anew_c"):
            self.c = 0
        self.build()


class RawTopic:
    """A topic of raw tuples: each accepted reading is sent at once. `fenced`: this run has committed a fence,
    and, if `caught_up`, was at the end of the source when Kafka had it.
    """

    def __init__(self, run: Run, topic: int, commit: RawCommit) -> None:
        self.run, self.topic = run, topic
        self.done = self._sent = commit.done
        self.fenced = self.caught_up = False
        self._told: tuple[float, int] | None = None

    def take(self, reading: Reading) -> None:
        """Send a reading, unless Kafka has it."""
        run = self.run
        if reading.offset >= self.done and run.plan.serves(self.topic, run.version):
            place = reading.source, reading.offset
            record = run.record("raw", self.topic, run.version, place=place, reading=reading)
            run.out.append((reading.group % run.fleet.partitions, record))

    def waiting(self) -> list[Record]:
        """The tuples that neither Kafka nor the spool has."""
        return [record for _, record in self.run.out if record.kind == "raw" and record.topic == self.topic]

    def settled(self) -> bool:
        """Kafka has all tuples, or the spool will give them to it before anything else."""
        return not self.waiting()

    def propose(self) -> RawCommit:
        offsets = [record.place for record in self.waiting()]
        here = [offset for source, offset in offsets if source == self.run.source]
        self._sent = max(self._sent, min(here, default=self.run.next))
        return RawCommit(self._sent)

    def committed(self, watermark: float, *, fence: bool) -> None:
        """The commit is durable: progress may be sent behind the tuples from before, and its fence."""
        version = self.run.version
        if fence:
            self.fenced = True
            self.run.send_fence(self.topic)
        if watermark > -INF and self._told != (watermark, version):
            self._told = watermark, version
            self.run.send_progress(self.topic, watermark, version, raw=True)

    def source_begins(self) -> None:
        """Offsets begin again at 0."""
        self.done = self._sent = 0
