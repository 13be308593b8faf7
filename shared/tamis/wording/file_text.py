"""Hints about text from outside: its encoding, what separates its columns, and numbers with commas."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}
SAMPLE = 4096  # bytes that are searched for NULs
# The first bytes of files that are not text, what they are, and how to get the text.
_BINARY = (
    (b"\x1f\x8b", "compressed by gzip", "unpack it first with gunzip"),
    (b"\x28\xb5\x2f\xfd", "compressed by zstd", "unpack it first with unzstd"),
    (b"BZh", "compressed by bzip2", "unpack it first with bunzip2"),
    (b"\xfd7zXZ", "compressed by xz", "unpack it first with unxz"),
    (
        b"PK\x03\x04",
        "a ZIP archive or a workbook",
        "unpack it first with unzip, or save the sheet as CSV in UTF-8",
    ),
    (b"PAR1", "Parquet", "give it a name that ends in .parquet"),
    (b"SQLite format 3\0", "a data base of SQLite", "export the table as CSV"),
)
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_EITHER = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
# A blank, also one that doesn't break the line, or an apostrophe may separate thousands.
_THOUSANDS = re.compile(
    r"[+-]?\d{1,3}(?P<between>[,. \u00a0\u202f'\u2019])\d{3}(?:(?P=between)\d{3})*(?P<end>[.,]\d+)?"
)


def number_hint(text: str) -> str | None:
    """A hint for a number with commas or with separated thousands; None for any other text.

    >>> number_hint("-3,5")
    'write a decimal point: -3.5'
    >>> number_hint("1,234")
    'write 1.234 if the comma is a decimal comma, and 1234 if it separates thousands'
    >>> number_hint("1.234,5"), number_hint("1,234,567"), number_hint("3.5"), number_hint("noon")
    ('write 1234.5', 'write 1234567', None, None)
    """
    text = text.strip()
    if _EITHER.fullmatch(text):
        pointed, whole = text.replace(",", "."), text.replace(",", "")
        return f"write {pointed} if the comma is a decimal comma, and {whole} if it separates thousands"
    if _DECIMAL_COMMA.fullmatch(text):
        return f"write a decimal point: {text.replace(',', '.')}"
    found = _THOUSANDS.fullmatch(text)
    if found is None or (found["between"] == "." and found["end"] is None and text.count(".") == 1):
        return None
    if found["end"] is not None and found["end"][0] == found["between"]:
        return None
    end = found["end"] or ""
    whole = text.removesuffix(end).replace(found["between"], "")
    return f"write {whole}{end.replace(',', '.')}"


def binary_problem(data: bytes) -> tuple[str, str] | None:
    """The mistake and a hint if bytes begin as a file of a known kind that isn't text; else None.

    >>> binary_problem(b"\\x1f\\x8b\\x08\\0")
    ('it is compressed by gzip, and no text', 'unpack it first with gunzip')
    """
    for start, kind, hint in _BINARY:
        if data.startswith(start):
            return f"it is {kind}, and no text", hint
    return None


def encoding_problem(data: bytes, *, cut: bool = False) -> tuple[str, str] | None:
    """The mistake and a hint if bytes are no text, or text in another encoding than UTF-8; None if they
    may be UTF-8. `cut`: further bytes follow, so that the last character may be incomplete.

    >>> encoding_problem("a,b".encode("utf-16"))
    ('it is UTF-16, and not UTF-8', 'save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8')
    """
    if (binary := binary_problem(data)) is not None:
        return binary
    wide = wide_encoding(data)
    if wide is not None:
        return f"it is {wide}, and not UTF-8", f"save it as UTF-8, for example with iconv -f {wide} -t UTF-8"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        if cut and error.start > len(data) - 4:
            return None
        line = data.count(b"\n", 0, error.start) + 1
        hint = "save it as UTF-8, for example with iconv -f WINDOWS-1252 -t UTF-8"
        return f"it is not UTF-8: byte {error.start + 1}, in line {line}", hint
    return None


def wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32, if bytes have its byte order mark or as many NULs as it has for ASCII; else None."""
    beginning = data[:SAMPLE]
    if beginning.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) or 8 * beginning.count(0) > 5 * len(
        beginning
    ):
        return "UTF-32"
    if beginning.startswith((b"\xff\xfe", b"\xfe\xff")) or 4 * beginning.count(0) > len(beginning):
        return "UTF-16"
    return None


def first_cells(data: bytes) -> Sequence[str]:
    """The cells of the first line of a CSV file, separated by commas.

    >>> first_cells(b"a;b\\n1,5;2,5")
    ['a;b']
    """
    line = data[:SAMPLE].decode("utf-8-sig", "replace").partition("\n")[0]
    return next(csv.reader([line.rstrip("\r")]), [])


def separator_hint(header: Sequence[str]) -> str | None:
    """A hint if the header of a CSV file is a single cell that has another separator than commas in it.

    >>> (separator_hint(["station;ts;temp"]) or "")[:54]
    'its columns are separated by semicolons; write commas:'
    """
    if len(header) != 1:
        return None
    between = next((one for one in _SEPARATORS if one in header[0].strip()), None)
    if between is None:
        return None
    shown = "\\t" if between == "\t" else between
    copy = f"COPY (FROM read_csv('in.csv', delim = '{shown}')) TO 'out.csv'"
    return (
        f'its columns are separated by {_SEPARATORS[between]}; write commas: duckdb -c "{copy}" converts it,'
        " and with decimal_separator = ',' also decimal commas"
    )
