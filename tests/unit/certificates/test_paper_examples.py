"""Examples of arasu-2004 and schiff-2020, tuple by tuple, and the reference sets of their queries."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.operators import compile_query
from tests.oracle.bounded.totally_ordered import reference_sets

from tamis.bounded.timeless.translate import translate
from tamis.expressions.nodes import Type
from tamis.expressions.vectors import Vector
from tamis.operators.contract import Rows
from tamis.query.model import AlertDef, Catalog, Explain
from tamis.query.parse import catalog_of, parse

FIXTURES = Path(__file__).parents[2] / "fixtures/bounded"
STREAMS = {
    "s": ("a", "b", "c"),
    "t": ("d", "e"),
    "i": ("a", "ts"),
    "j": ("b", "ts"),
    "k": ("c", "ts"),
    "s1": ("a", "b", "c", "d"),
    "s2": ("e", "f", "g"),
    "s3": ("h", "i", "j"),
}


def _catalog() -> Catalog:
    made = []
    for name, columns in STREAMS.items():
        timed = "ts" in columns
        typed = ", ".join(f"{one} {'TIMESTAMP' if one == 'ts' else 'INT'}" for one in columns)
        made.append(f"CREATE STREAM {name} ({typed}{', WATERMARK FOR ts AS ts' if timed else ''});")
    return catalog_of("".join(made))


def _cases(file: str, ends: str) -> Iterator[tuple[str, str, str]]:
    for case in (FIXTURES / file).read_text().split("---- ")[1:]:
        name, _, rest = case.partition("\n")
        at = rest.index(ends)
        yield name, rest[:at].strip(), rest[at:].strip()


def _alert(catalog: Catalog, sql: str) -> AlertDef:
    (statement,) = parse(f"EXPLAIN {sql}", catalog)
    assert isinstance(statement, Explain)
    assert isinstance(statement.target, AlertDef)
    return statement.target


EVALUATED = list(_cases("evaluation.sql", "--+"))
REFERENCES = list(_cases("references.sql", "--!"))


@pytest.mark.parametrize(("sql", "steps"), [c[1:] for c in EVALUATED], ids=[c[0] for c in EVALUATED])
def test_rows_after_every_tuple(sql: str, steps: str) -> None:
    catalog = _catalog()
    query = compile_query(_alert(catalog, sql).query, catalog)
    assert query is not None
    *tuples, last = steps.splitlines()
    timed = sorted(stream for stream in query.streams if "ts" in STREAMS[stream])
    given: Counter[tuple[object, ...]] = Counter()
    for number, step in enumerate(tuples):
        values, _, shown = step.removeprefix("--+ ").partition(" -> ")
        stream, *cells = values.split()
        kinds = [Type.TIMESTAMP if name == "ts" else Type.INT for name in STREAMS[stream]]
        batch = {
            name: Vector.from_list([None if cell == "NULL" else int(cell)], kind)
            for name, cell, kind in zip(STREAMS[stream], cells, kinds, strict=True)
        }
        given += _rows(query.take(stream, batch, 1))
        following = tuples[number + 1] if number + 1 < len(tuples) else None
        if timed and (following is None or following.split(" -> ")[0].split()[-1] != cells[-1]):
            for each in timed:  # all of this time step have come
                given += _rows(query.advance(each, int(cells[-1]) + 1))
        wanted = ast.literal_eval(f"[{shown}]")
        assert given == Counter(one if isinstance(one, tuple) else (one,) for one in wanted), step
        given.clear()
    assert query.entries() == int(last.split()[1])


def _rows(found: Rows) -> Counter[tuple[object, ...]]:
    return Counter(zip(*(vector.to_list() for vector in found.columns.values()), strict=True))


@pytest.mark.parametrize(("sql", "sets"), [c[1:] for c in REFERENCES], ids=[c[0] for c in REFERENCES])
def test_reference_sets(sql: str, sets: str) -> None:
    catalog = _catalog()
    (branch,) = translate(_alert(catalog, sql).query, catalog).branches
    query = branch.conjunction
    for occurrence, one in enumerate(sets.removeprefix("--! ").split("; ")):
        alias, _, rest = one.partition(" MaxRef")
        greatest, _, least = rest.partition(" MinRef")
        assert query.aliases[occurrence] == alias
        found = reference_sets(query, branch.closure, occurrence)
        named = [{query.nodes[node - 1].column for node in nodes} for nodes in found]
        assert named == [set(greatest.split()), set(least.split())], alias
