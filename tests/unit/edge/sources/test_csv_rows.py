"""A CSV file's rows, and the lines that are none."""

from __future__ import annotations

from pathlib import Path

from tamis.expressions.nodes import Type
from tamis_edge.sources.base import Payloads, RawColumns
from tamis_edge.sources.file_rows import csv_blocks

TYPES = {"k": Type.VARCHAR, "v": Type.DOUBLE}


def read(path: Path, content: bytes, size: int = 100) -> list[tuple[int, object]]:
    """Offset and content of all rows: the columns of one, or the bytes of a line that is none."""
    path.write_bytes(content)
    found: list[tuple[int, object]] = []
    for block in csv_blocks(path, TYPES, size):
        if isinstance(block, Payloads):
            found += zip(block.offsets.tolist(), block.payloads, strict=True)
        elif isinstance(block, RawColumns):
            rows = zip(*block.columns.values(), strict=True)
            found += zip(block.offsets.tolist(), rows, strict=True)
    return found


def test_rows_are_numbered_typed_and_null_where_empty(tmp_path: Path) -> None:
    content = b'\xef\xbb\xbfk,v\r\na,1.5\r\n\r\n"b,""c""",\r\n'
    assert read(tmp_path / "f.csv", content) == [(0, ("a", 1.5)), (1, ('b,"c"', None))]


def test_a_line_that_is_no_row_stops_nothing_and_is_kept_whole(tmp_path: Path) -> None:
    content = b"k,v\na,1\nb\nc,2,3\n\xff\xfe,4\nd,5\n"
    rows = read(tmp_path / "f.csv", content)
    assert rows == [(0, ("a", 1.0)), (1, b"b"), (2, b"c,2,3"), (3, b"\xff\xfe,4"), (4, ("d", 5.0))]
    assert rows == read(tmp_path / "f.csv", content, size=1), "numbers don't depend on the size of blocks"


def test_a_cell_without_end_is_set_aside(tmp_path: Path) -> None:
    lines = b"".join(b"x%d,1\n" % n for n in range(30_000))
    rows = read(tmp_path / "f.csv", b'k,v\na,1\n"never closed,1\n' + lines)
    assert rows[0] == (0, ("a", 1.0))
    assert any(isinstance(row, bytes) and row.startswith(b'"never closed') for _, row in rows)
