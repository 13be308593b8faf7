"""Plots of docs/benchmarks; `python -m benchmarks.plots` draws them again from the stored figures."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import nan, pi
from pathlib import Path
from typing import Any

import orjson
from matplotlib.axes import Axes
from matplotlib.figure import Figure

PAGES = Path(__file__).resolve().parents[1] / "docs" / "benchmarks"
RESULTS = Path(__file__).parent / "results"

Row = Mapping[str, Any]


def stores(rows: Sequence[Row]) -> None:
    """Table 1: time per tuple by disorder, a panel for each stream."""
    figure, panels = _panels(2, sharey=True)
    for axes, stream in zip(panels, ("s-unif", "s-wiener"), strict=True):
        mine = [row for row in rows if row["stream"] == stream]
        for number, name in enumerate(
            ("sorted list", "linked list", "red-black tree", "skip list", "stream form", "kernel")
        ):
            ours = name in {"stream form", "kernel"}
            axes.plot(
                [row["sigma"] for row in mine],
                [row[name] for row in mine],
                marker="os^vDP"[number],
                linestyle="-" if ours else "--",
                color=f"C{number}",
                label=f"Tamis: {name}" if ours else name,
            )
        axes.set_xscale("symlog", linthresh=1)
        axes.set_yscale("log")
        axes.set_title(stream)
        axes.set_xlabel("disorder σ (ticks; ten ticks per tuple)")
    panels[0].set_ylabel("CPU time per tuple (µs)")
    _legend_below(figure, panels[0])
    _save(figure, "omission-stores.png")


def retention(rows: Sequence[Row]) -> None:
    """Figure 10, a and b: what is retained by the interval's length, in all and per interval."""
    figure, panels = _panels(2)
    names = list(dict.fromkeys(row["stream"] for row in rows))
    for axes, what in zip(panels, ("retained", "per interval"), strict=True):
        for number, name in enumerate(names):
            mine = [row for row in rows if row["stream"] == name]
            sizes = [row["tuples per interval"] for row in mine]
            strict, fewest = ([row[f"{what}, {ties}"] for row in mine] for ties in ("strict", "fewest"))
            if strict != fewest:
                axes.plot(sizes, strict, "--", marker="^", color=f"C{number}", label=f"{name}, strict")
            label = name if strict == fewest else f"{name}, fewest"
            axes.plot(sizes, fewest, marker="o", color=f"C{number}", label=label)
        axes.set_xscale("log", base=2)
        axes.set_xlabel("tuples in an omission interval")
    shared, each = panels
    shared.set_ylabel("share of tuples retained")
    shared.set_ylim(0, 1.03)
    shared.set_title("a: of all tuples")
    sizes = [row["tuples per interval"] for row in rows if row["stream"] == names[0]]
    each.plot(sizes, [4] * len(sizes), color="0.5", linestyle=":", label="four per interval")
    roots = [4 * (size / pi) ** 0.5 for size in sizes]
    each.plot(sizes, roots, color="0.5", linestyle="-.", label="4 √(n / π)")
    each.set_yscale("log", base=2)
    each.set_ylabel("tuples retained per interval")
    each.set_title("b: per omission interval")
    _legend_below(figure, each)
    _save(figure, "omission-retention.png")


def growth(rows: Sequence[Row]) -> None:
    """Time by tuples, time by keys, and what the stream form keeps by keys."""
    figure, (by_tuples, by_keys, kept) = _panels(3)
    for number, form in enumerate(("kernel", "stream form")):
        for few, style in ((1, "-"), (100, "--")):
            mine = [row for row in rows if row["keys"] == few]
            by_tuples.plot(
                [row["tuples"] for row in mine],
                [row[form] for row in mine],
                style,
                marker="o",
                color=f"C{number}",
                label=f"{form}, {few} key{'s' if few > 1 else ''}",
            )
    most = max(row["tuples"] for row in rows)
    widest = sorted((row for row in rows if row["tuples"] == most), key=lambda row: row["keys"])
    keys = [row["keys"] for row in widest]
    for number, form in enumerate(("kernel", "stream form")):
        costs = [1e9 * row[form] / most for row in widest]
        by_keys.plot(keys, costs, marker="o", color=f"C{number}", label=form)
    kept.plot(keys, [row["most tuples kept"] for row in widest], marker="o", color="C1", label="stream form")
    kept.axhline(most, color="0.5", linestyle=":", label="all tuples of the stream")
    for axes in (by_tuples, kept):
        axes.set_yscale("log")
    for axes in (by_tuples, by_keys, kept):
        axes.set_xscale("log")
        axes.legend(fontsize="small")
    by_tuples.set(xlabel="tuples", ylabel="CPU time (s)", title="time by tuples")
    by_keys.set(xlabel="keys", ylabel="CPU time per tuple (ns)", title=f"time by keys, {most:,} tuples")
    by_keys.set_ylim(bottom=0)
    kept.set(xlabel="keys", ylabel="most tuples kept at a time", title=f"state, {most:,} tuples")
    _save(figure, "omission-growth.png")


def matching(rows: Sequence[Row]) -> None:
    """Figures 9 to 15 of kuntschke-2006: time by dimensions and sizes, bounded or not, and of large ones."""
    figure, panels = _panels(4, sharey=True)
    points = (("9, 12", "dimensions"), ("10, 13", "query"), ("11, 14", "stream"), ("15", "stream"))
    methods = [name for name in rows[0] if name.endswith(", ms")]
    for axes, (figures, by) in zip(panels, points, strict=True):
        for bounded, line in (("yes", "-"), ("no", ":")):
            mine = [row for row in rows if (row["figures"], row["bounded"]) == (figures, bounded)]
            for number, method in enumerate(methods if mine else ()):
                label = method.removesuffix(", ms") + ("" if bounded == "yes" else ", unbounded")
                axes.plot(
                    [row[by] for row in mine],
                    [float(row.get(method) or nan) for row in mine],
                    line,
                    marker="os^vDPX*<"[number],
                    markersize=4,
                    color=f"C{number}",
                    label=label,
                )
        axes.set_yscale("log")
        axes.set_title(f"Figure{'s' if ',' in figures else ''} {figures}")
        axes.set_xlabel("dimensions" if by == "dimensions" else f"boxes of the {by} predicate")
    panels[0].set_ylabel("CPU time per pair (ms)")
    _legend_below(figure, panels[0])
    _save(figure, "predicates-matching.png")


def evaluation(rows: Sequence[Row]) -> None:
    """Figures 16 to 18 of kuntschke-2006: throughput by dimensions, size and selectivity."""
    figure, panels = _panels(3, sharey=True)
    ways = [name for name in rows[0] if name.endswith(", M items/s")]
    points = (("16", "dimensions"), ("17", "boxes"), ("18", "selectivity"))
    for axes, (number, by) in zip(panels, points, strict=True):
        mine = [row for row in rows if row["figure"] == number]
        for at, way in enumerate(ways):
            name = way.removesuffix(", M items/s")
            line = "-" if name in {"Tamis", "index"} else "--"
            axes.plot(
                [row[by] for row in mine], [row[way] for row in mine], line, marker="os^vDP"[at], label=name
            )
        axes.set_yscale("log")
        axes.set_title(f"Figure {number}")
        axes.set_xlabel(by)
    panels[1].set_xscale("log")
    panels[0].set_ylabel("millions of items per CPU second")
    _legend_below(figure, panels[0])
    _save(figure, "predicates-evaluation.png")


def similarity_growth(rows: Sequence[Row]) -> None:
    """Time per reading of `tamis.similarity`, a panel for each size that grows."""
    figure, panels = _panels(4, sharey=True)
    for axes, by in zip(panels, ("patterns", "length", "epsilon", "keys"), strict=True):
        mine = [row for row in rows if row["grows"] == by]
        axes.plot([row[by] for row in mine], [row["ns per reading"] for row in mine], marker="o", color="C0")
        axes.axhline(1e9 / 20_000, color="0.5", linestyle=":")
        axes.set_xscale("log", base=2 if by == "length" else 10)
        axes.set(yscale="log", xlabel=by, title=f"time by {by}")
    panels[0].set_ylabel("CPU time per reading (ns)")
    panels[0].text(10, 1e9 / 20_000, "20,000 readings/s", va="bottom", color="0.3")
    _save(figure, "similarity-growth.png")


def memory(rows: Sequence[Row]) -> None:
    """Resident memory of an edge and of the joiner by readings."""
    figure, panels = _panels(2)
    for axes, name in zip(panels, ("edge, MB", "joiner, MB"), strict=True):
        axes.plot([row["readings"] / 1e6 for row in rows], [row[name] for row in rows], color="C0")
        axes.set(xlabel="readings (millions)", ylabel="resident memory (MB)", title=name.partition(",")[0])
        axes.set_ylim(bottom=0)
    _save(figure, "memory.png")


def _panels(number: int, *, sharey: bool = False) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(5.2 * number, 4.6), layout="constrained")
    panels = list(figure.subplots(1, number, sharey=sharey))
    for axes in panels:
        axes.grid(color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    return figure, panels


def _legend_below(figure: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)


def _save(figure: Figure, name: str) -> None:
    PAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(PAGES / name, dpi=120)


def _again(drawings: Iterable[tuple[str, Any]]) -> None:
    for name, draw in drawings:
        path = RESULTS / f"{name}.json"
        if path.exists():
            draw(orjson.loads(path.read_bytes())["rows"])


if __name__ == "__main__":
    _again(
        [
            ("omission.stores", stores),
            ("omission.retention", retention),
            ("omission.growth", growth),
            ("predicates.matching", matching),
            ("predicates.evaluation", evaluation),
            ("similarity.growth", similarity_growth),
            ("memory", memory),
        ]
    )
