"""The text of a CREATE STREAM in parts, so that ALTER STREAM can change some of them and keep the others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.dialect import tokenize
from tamis.query.syntax.text import Text

_HINT = "write CREATE STREAM name (…)"


@dataclass
class Part:
    """A column or a watermark as text. `offset`: of the change in ALTER STREAM that wrote it; None for a part
    that is as it was.
    """

    text: str
    offset: int | None = None


@dataclass
class StreamText:
    """CREATE STREAM: the name as it is written, the columns by name, the watermark, and the options."""

    name: str
    columns: dict[str, Part]
    watermark: Part | None
    options: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, sql: str) -> Self:
        """The parts of a statement that was parsed before."""
        tokens = tokenize(sql)
        cursor = Cursor(Text(sql), tokens, tokens[-1].end + 1)
        cursor.word("CREATE")
        cursor.word("OR", "REPLACE")
        cursor.word("STREAM")
        name = cursor.tokens[cursor.at]
        cursor.take()
        found = cls(sql[name.start : name.end + 1], {}, None)
        for item in cursor.group("columns", _HINT).items():
            if item.word("WATERMARK", "FOR"):
                found.watermark = Part(source(item, 0))
            else:
                found.columns[item.name("the name of a column", _HINT).text] = Part(source(item, 0))
        if cursor.word("WITH"):
            for item in cursor.group("options", _HINT).items():
                option = item.take()
                item.symbol("=")
                if option is not None:
                    found.options[option.text.lower()] = source(item, item.at)
        return found

    @property
    def parts(self) -> list[Part]:
        """The columns and the watermark."""
        return [*self.columns.values(), *([self.watermark] if self.watermark else [])]

    def sql(self) -> str:
        """The statement. Each part begins on a line of its own."""
        options = ", ".join(f"{name} = {value}" for name, value in self.options.items())
        columns = ",\n    ".join(part.text for part in self.parts)
        return f"CREATE STREAM {self.name} (\n    {columns}\n)" + (f" WITH ({options})" if options else "")

    def offset(self, line: int) -> int | None:
        """The offset of the change that wrote a line of `sql`, counted from 1; None if none did."""
        at = 2
        for part in self.parts:
            at += part.text.count("\n") + 1
            if line < at:
                return part.offset
        return None


def source(cursor: Cursor, first: int) -> str:
    """The text from a token, given by its number, to the last token of the cursor."""
    tokens = cursor.tokens[first:]
    return cursor.text.text[tokens[0].start : tokens[-1].end + 1] if tokens else ""


def without(column: str, words: tuple[str, ...]) -> str:
    """The text of a column without some clause: CHECK with its condition, or NOT NULL."""
    tokens = tokenize(column)
    cursor = Cursor(Text(column), tokens, tokens[-1].end + 1)
    cursor.take()  # the name, which may be one of these words
    kept = [(tokens[0].start, tokens[0].end + 1)]
    while cursor.current is not None:
        if cursor.word(*words):
            if words == ("CHECK",):
                cursor.group("condition", _HINT)
            continue
        token = cursor.take()
        assert token is not None
        kept.append((token.start, token.end + 1))
        if token.text == "(":  # of a CHECK that stays: its inside may have any words
            cursor.at -= 1
            first = cursor.offset
            cursor.group("condition", _HINT)
            last = cursor.tokens[cursor.at - 1]
            kept[-1] = (first, last.end + 1)
    return " ".join(column[start:end] for start, end in kept)
