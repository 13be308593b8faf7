"""Recordings that can't be read: refused at the start, and no matter of other sources once the edge runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet
import pytest
from tests.unit.edge.plans import air, entry, plan, topic

from tamis.errors import InputError
from tamis.settings import KafkaSettings
from tamis.telemetry.metrics import Metrics
from tamis_edge.decode.decoder import Decoder
from tamis_edge.edge import Edge
from tamis_edge.settings import EdgeConfig, FileSource
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources import file as file_source
from tamis_edge.sources.base import RawColumns
from tamis_edge.sources.file import RETRY, FileSources
from tamis_edge.storage.journal import Journal

STREAM = air([topic([entry(0)])])


@contextmanager
def nobody() -> Iterator[None]:
    """Another user than the files' owner, where this one may read everything."""
    mine = os.geteuid()
    if mine == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(mine)


def source(path: Path, name: str = "rec") -> FileSource:
    return FileSource(name=name, kind="file", stream="air", path=path)


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    found = Journal(tmp_path / "journal.db", 2**20)
    yield found
    found.close()


def test_all_that_cannot_be_read_is_told_at_the_start(tmp_path: Path, journal: Journal) -> None:
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "text.parquet").write_text("station,ts,temp\n")
    (tmp_path / "empty.parquet").touch()
    (tmp_path / "good.csv").write_text("station,ts,temp\n")
    names = ("none.csv", "folder.csv", "text.parquet", "empty.parquet", "good.csv", "none.txt", "air-*.csv")
    with pytest.raises(InputError) as caught:
        FileSources([source(tmp_path / name, f"s{i}") for i, name in enumerate(names)], "e", journal)
    lines = str(caught.value).splitlines()
    hint = "correct the path of source"
    assert lines[0].startswith(f"{tmp_path}/none.csv: can't be read: No such file or directory; {hint} 's0'")
    assert lines[1] == f"{tmp_path}/folder.csv: it is no file; {hint} 's1'"
    assert lines[2].startswith(f"{tmp_path}/text.parquet: isn't Parquet: ")
    assert lines[2].endswith("correct the `format` of source 's2'")
    assert lines[3].startswith(f"{tmp_path}/empty.parquet: isn't Parquet: ")
    assert lines[4] == f"{tmp_path}/none.txt: unknown suffix '.txt'; set `format` to csv, ndjson or parquet"
    assert lines[5].endswith("a path names one file, and is no pattern; add a source for each file to 's6'")
    assert len(lines) == 6


def test_a_file_that_its_user_may_not_read(tmp_path: Path, journal: Journal) -> None:
    path = tmp_path / "a.csv"
    path.write_text("station,ts,temp\n")
    path.chmod(0)
    with nobody(), pytest.raises(InputError, match=r"Permission denied; .* or let the edge's user read it"):
        FileSources([source(path)], "e", journal)


def test_one_that_was_read_to_its_end_is_not_needed(tmp_path: Path, journal: Journal) -> None:
    path = tmp_path / "a.csv"
    path.write_text("station,ts,temp\na,1,1\n")
    (shard,) = FileSources([source(path)], "e", journal).shards()
    commit, final = shard.committed()
    shard.commit(commit, not final).result(10)
    path.unlink()
    FileSources([source(path)], "e", journal)


def test_a_damaged_file_is_read_on_where_that_began(tmp_path: Path, journal: Journal) -> None:
    path = tmp_path / "a.parquet"
    rows = pa.table({"station": ["a"] * 12_000, "ts": list(range(12_000)), "temp": [1.0] * 12_000})
    pyarrow.parquet.write_table(rows, path, row_group_size=10_000, compression="none", use_dictionary=False)
    good = path.read_bytes()
    second = pyarrow.parquet.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    path.write_bytes(good[:second] + b"\xff" * 1000 + good[second + 1000 :])
    sources = FileSources([source(path)], "e", journal)
    (shard,) = sources.shards()
    shard.start(0, Decoder(STREAM, FieldMap()))

    def taken(now: int) -> list[int]:
        part = shard.poll(7_000, now)
        assert part is None or isinstance(part, RawColumns)
        return [] if part is None else list(part.columns["ts"])

    assert taken(1) + taken(2) == list(range(10_000))
    assert "can't be read after row 10000" in (sources.troubles()["rec"] or "")
    assert (taken(3), shard.ended) == ([], False)
    path.write_bytes(good)
    assert (taken(2 + RETRY), taken(3 + RETRY)) == ([], list(range(10_000, 12_000)))
    assert (shard.ended, sources.troubles()) == (True, {"rec": None})


def test_the_end_of_a_file_is_logged_once(
    tmp_path: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines that are added later are not read, and nothing else says so."""
    said: list[dict[str, object]] = []
    monkeypatch.setattr(
        file_source._log, "info", lambda what, **fields: said.append({"what": what, **fields})
    )
    path = tmp_path / "air.csv"
    path.write_text("station,ts,temp\na,1,1\na,2,1\n")
    (shard,) = FileSources([source(path)], "e", journal).shards()
    shard.start(0, Decoder(STREAM, FieldMap()))
    first = shard.poll(100, 1)
    assert first is not None and len(first.offsets) == 2
    with path.open("a") as file:
        file.write("a,3,1\n")
    assert [shard.poll(100, now) for now in (2, 3)] == [None, None]
    what = "the file has ended; what is added to it later is not read"
    assert said == [{"what": what, "source": "rec", "path": str(path), "rows": 2}]


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[Callable[..., Edge]]:
    """Edges that can't reach Kafka, with the clock in `now`."""
    made: list[Edge] = []

    def make(sources: list[FileSource], now: list[int]) -> Edge:
        config = EdgeConfig(sources=sources)  # type: ignore[arg-type]
        kafka = KafkaSettings(bootstrap="127.0.0.1:1")
        found = Edge(config, tmp_path / "data", kafka, Metrics("edge"), lambda: now[0])
        made.append(found)
        found.plans._plan = plan(STREAM, [f"air:edge/{one.name}" for one in sources])
        return found

    yield make
    for one in made:
        for part in (one.publisher, one.journal, one.spool):
            part.close()


def test_a_file_that_goes_takes_no_other_source_down(tmp_path: Path, edge: Callable[..., Edge]) -> None:
    paths = [tmp_path / name for name in ("a.ndjson", "b.ndjson")]
    line = orjson.dumps({"station": "a", "ts": 1, "temp": 1.0}) + b"\n"
    for path in paths:
        path.write_bytes(line * 3)
    now = [1_700_000_000_000_000]
    running = edge([source(path, path.stem) for path in paths], now)
    paths[0].unlink()

    def seen() -> tuple[float | None, float | None, float | None]:
        for _ in range(3):
            now[0] += 1_000_000
            running.turn()
        read = running._metrics.registry.get_sample_value
        labels = {"edge": "edge", "stream": "air"}
        return (
            read("tamis_edge_source_up", {"edge": "edge", "source": "a"}),
            read("tamis_edge_source_up", {"edge": "edge", "source": "b"}),
            read("tamis_edge_received_bytes_total", labels),
        )

    # A line without its end, as `Delivery.size` counts it.
    assert seen() == (0.0, 1.0, 3 * (len(line) - 1))
    assert running.workers["air:edge/b"].source.ended
    paths[0].write_bytes(line * 2)
    now[0] += RETRY
    assert seen() == (1.0, 1.0, 5 * (len(line) - 1))
    assert running.workers["air:edge/a"].source.ended
