"""Parsing of random texts ends soon, and raises only `SqlErrors`."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Sequence

import duckdb
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.oracle.random_cases import SEED
from tests.unit.query.test_mistakes import CASES as MISTAKES
from tests.unit.query.test_mistakes import base
from tests.unit.query.test_parse import CASES as GOOD

from tamis.errors import SqlError, SqlErrors
from tamis.query.model import Catalog
from tamis.query.parse import parse
from tamis.query.syntax.dialect import tokenize

BASE = base()
TEXTS = [sql for _, sql, _ in GOOD]
LONGEST_SECONDS = 10.0  # of CPU, since a busy machine says nothing about the parser


def survives(text: str) -> bool:
    """Parse; whether it was accepted. Anything but `SqlErrors` with places in the text fails."""
    began = time.process_time()
    lines = text.split("\n")
    errors: tuple[SqlError, ...] | None = None
    try:
        parse(text, BASE)
    except SqlErrors as raised:
        errors = raised.errors
    assert time.process_time() - began < LONGEST_SECONDS
    assert errors != ()
    for error in errors or ():
        place = error.position
        assert place is not None and error.what and error.hint
        assert 1 <= place.line <= len(lines) and 1 <= place.column <= len(lines[place.line - 1]) + 1
    return errors is None


def pieces(text: str) -> list[str]:
    """The words and signs of a text as they are written, with the white space behind each."""
    starts = [token.start for token in tokenize(text)]
    return [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]


PIECES = [pieces(text) for text in TEXTS]
WORDS = sorted(
    {piece.strip() for text in PIECES for piece in text} | {"GROUP BY", "UNION", "OVER", "::", "%", "."}
)


# What shapes a SELECT, and names, numbers and texts to put between.
_SHAPES = """AS AS ON JOIN CROSS FROM WHERE AND OR NOT BETWEEN IN IS NULL CASE WHEN THEN ELSE END INTERVAL
    DISTINCT , ( ) . * + - / ^ = < >= != :: air surface a s temp n station ts ln 1 0.5 'x' '5' "q" TRUE"""
SHAPES = tuple(re.split(r"\s+", _SHAPES))
SELECT = re.compile(r"CREATE ALERT \w+ AS\s+(SELECT [^;]*)(?:;|\Z)")
LETTER = re.compile(r"INTERVAL\s*'[^']*'\s*[a-z]\b")


def mutated(words: list[str], chance: random.Random, vocabulary: Sequence[str] = WORDS) -> str:
    """Some words dropped, doubled, exchanged or put in."""
    words = list(words)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(words))
        match chance.randrange(5):
            case 0 if len(words) > 1:
                del words[at]
            case 1:
                words.insert(at, words[at])
            case 2:
                other = chance.randrange(len(words))
                words[at], words[other] = words[other], words[at]
            case 3:
                words.insert(at, chance.choice(vocabulary) + " ")
            case _:
                words[at] = chance.choice(vocabulary) + " "
    return "".join(words)


def test_mutated_texts_never_break_the_parser() -> None:
    chance = random.Random(SEED)
    accepted = sum(survives(mutated(chance.choice(PIECES), chance)) for _ in range(1500))
    # Both outcomes must occur, or the mutations test nothing.
    assert 10 < accepted < 1450


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PIECES), st.randoms(use_true_random=False))
def test_mutated_texts_shrink(words: list[str], chance: random.Random) -> None:
    survives(mutated(words, chance))


def is_sql(text: str) -> bool:
    """Tell if DuckDB's parser accepts a text, or refuses only a unit of time as a name, which it reserves. It
    has neither BETWEEN SYMMETRIC nor a TABLE as an argument.
    """
    try:
        plain = re.sub(r"(\(|=> )TABLE ", r"\1", text.replace("BETWEEN SYMMETRIC", "BETWEEN"))
        duckdb.extract_statements(plain)
    except duckdb.ParserException as error:
        return bool(re.search('near "(SECOND|MINUTE|HOUR)"', str(error), re.IGNORECASE))
    return True


def test_what_is_accepted_is_sql_to_another_parser() -> None:
    """sqlglot is lenient; DuckDB's parser tells where it let something pass that is no SELECT at all."""
    chance = random.Random(SEED)
    selects = [pieces(f"EXPLAIN {match[1]}") for text in TEXTS for match in SELECT.finditer(text)]
    accepted = 0
    for _ in range(2500):
        text = mutated(chance.choice(selects), chance, SHAPES)
        # DuckDB has no unit of one letter.
        if not text.startswith("EXPLAIN SELECT") or LETTER.search(text):
            continue
        with contextlib.suppress(SqlErrors):
            parse(text, BASE)
            assert is_sql(text), text
            accepted += 1
    assert accepted > 10


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
@example("\x00")
@example("CREATE STREAM \ud800")
@example("CREATE ALERT q AS SELECT '\ud800' FROM air")
@example("CREATE ALERT é AS SELECT n AS ß FROM air WHERE n > ٣")
@example("SHOW\u00a0ALERTS\u2028;\x85")
def test_any_text(text: str) -> None:
    survives(text)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40))
def test_any_words_behind_a_head(words: list[str]) -> None:
    survives("CREATE ALERT q AS SELECT " + " ".join(words))
    survives("CREATE STREAM s (k VARCHAR, " + " ".join(words) + ")")


@pytest.mark.parametrize("sql", [sql for _, sql, _ in MISTAKES if len(sql) < 400])
def test_every_beginning_of_a_mistaken_text(sql: str) -> None:
    for end in range(0, len(sql), 7):
        survives(sql[:end])


def test_an_empty_text_is_no_statement() -> None:
    assert parse("", Catalog()) == parse(" ;; -- nothing\n", Catalog()) == []
