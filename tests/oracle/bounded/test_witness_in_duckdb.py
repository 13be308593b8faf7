"""Witnesses of unbounded queries, run by DuckDB on the query's own SQL.

Every subset of the example's stored tuples gives different rows later, through SELECT, GROUP BY and UNION as
they are written.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import duckdb
import pytest
from tests.oracle.bounded import checked_streams
from tests.oracle.bounded import timeless_queries as queries
from tests.oracle.random_cases import SEED, also_long, cases

from tamis.bounded.examples.proof import WrittenProof
from tamis.bounded.timeless.translate import translate
from tamis.bounded.timeless.verdict import memory_verdict, proof_of
from tamis.bounded.timeless.witness import Witness
from tamis.expressions.nodes import Type
from tamis.plan.conjunction import EXTREME_STREAM, NULL
from tamis.query.model import Catalog, Query, TimelessQuery, selects_of
from tamis.query.parse import catalog_of

Named = tuple[str, tuple[object, ...]]
Rows = Counter[tuple[object, ...]]


@pytest.mark.parametrize("times", also_long(30))
def test_every_subset_gives_other_rows_later(times: int) -> None:
    r = random.Random(SEED)
    reference, catalog = queries.reference(), catalog_of(queries.STREAMS)
    tried = 0
    while tried < cases(0.0007) * times:
        sql = random_query(r, tried % 4)
        alert = queries.alert_of(catalog, sql)
        assert isinstance(alert.query, TimelessQuery)
        if memory_verdict(alert.query, catalog).verdict != "unbounded":
            continue
        proof = proof_of(alert.query, catalog)
        witness = None if proof is None else proof.witness()
        assert witness is not None, (SEED, sql)
        codes = _codes(alert.query, catalog)
        assert proof is not None
        if isinstance(proof, WrittenProof):
            stored, later = _as_written(r, proof, witness)
            told = _told(reference, sql, stored, later)
            assert told == 8, (SEED, sql, stored, later, told)
            tried += 1
            continue
        if re.search(r"\b[xy]\.[xy]\b", sql):
            continue  # of a DOUBLE an example says the order of its values only
        read = {(proof.query.streams[node.occurrence], node.column): 0 for node in proof.query.nodes}
        stored = [(witness.stream, _tuple(r, witness.stream, read, one, codes)) for one in witness.stored]
        later = [
            [(name, _tuple(r, name, read, one, codes)) for name, one in more if name != EXTREME_STREAM]
            for more in witness.completions
        ]
        told = _told(reference, sql, stored, later)
        assert told == 8, (SEED, sql, stored, later, told)
        tried += 1


@pytest.mark.parametrize("times", also_long(30))
def test_every_subset_gives_other_rows_later_with_checks(times: int) -> None:
    """DuckDB's tables have the CHECKs, and refuse a tuple that violates one."""
    r = random.Random(SEED)
    tried = 0
    while tried < cases(0.0006) * times:
        streams = checked_streams.CheckedStreams(r)
        catalog = catalog_of(streams.sql)
        for _ in range(4):
            alert = queries.alert_of(catalog, checked_streams.query(r))
            assert isinstance(alert.query, TimelessQuery)
            if memory_verdict(alert.query, catalog).verdict != "unbounded":
                continue
            proof = proof_of(alert.query, catalog)
            witness = None if proof is None else proof.witness()
            assert witness is not None, (SEED, streams.sql, alert.sql)
            if not isinstance(proof, WrittenProof):
                continue  # its example says nothing of the columns that aren't compared
            parts = [[_checked_tuple(catalog, *one) for one in part] for part in proof.tuples(witness)]
            count = len(witness.stored)
            stored = [one for part in parts[:count] for one in part]
            told = _told(streams.reference, alert.sql, stored, parts[count:])
            assert told == 8, (SEED, streams.sql, alert.sql, parts, told)
            tried += 1


def _checked_tuple(catalog: Catalog, stream: str, values: Mapping[str, object]) -> Named:
    """The whole tuple: NULL, or any value if that isn't admitted, where the query reads no column."""
    other = {Type.INT: 1, Type.DOUBLE: 0.5, Type.VARCHAR: "p"}
    columns = catalog.streams[stream].columns
    return stream, tuple(values.get(one.name, other[one.type] if one.not_null else None) for one in columns)


def _as_written(
    r: random.Random, proof: WrittenProof, witness: Witness
) -> tuple[list[Named], list[list[Named]]]:
    """The stored tuples and the completions; any value where the query doesn't read a column."""

    def whole(stream: str, values: Mapping[str, object]) -> Named:
        filled = zip(queries.COLUMNS[stream], queries.tuple_of(r, stream), strict=True)
        return stream, tuple(values.get(name, other) for (name, _), other in filled)

    parts = [[whole(*one) for one in part] for part in proof.tuples(witness)]
    count = len(witness.stored)
    return [one for part in parts[:count] for one in part], parts[count:]


def _codes(query: Query, catalog: Catalog) -> Mapping[int, str]:
    return {n: text for one in selects_of(query) for text, n in translate(one, catalog).codes.items()}


def random_query(r: random.Random, kind: int) -> str:
    """Columns, expressions, groups, or a union."""
    sources = queries.sources_of(r)
    whole, flags, texts, _ = queries.columns_of(sources)
    where = queries.where(r, sources, 0.2)
    body = f" FROM {', '.join(sources)}{where}"
    a, b = r.choice(whole), r.choice(whole)
    shown = r.choice((a, r.choice(texts), "1", r.choice(flags)))
    match kind:
        case 0:
            return f"SELECT {r.choice(('', 'DISTINCT '))}{shown} AS o{body}"
        case 1:
            expression = r.choice(
                (f"{a} + 1", f"-2 * {a}", f"{a} * 0", f"{a} > {b}", f"{a} + {b}", f"{a} - {a}")
            )
            beside = r.choice(("", f", {shown} AS p"))
            return f"SELECT {r.choice(('', 'DISTINCT '))}{expression} AS o{beside}{body}"
        case 2:
            calls = (
                f"max({a})",
                f"min({a})",
                "count(*)",
                f"count(DISTINCT {a})",
                f"sum({b})",
                "count(*) * 2",
            )
            by = r.choice(("", r.choice(flags), a))
            group, first = (f" GROUP BY {by}", f"{by} AS g, ") if by else ("", "")
            return f"SELECT {first}{r.choice(calls)} AS o{body}{group}"
        case _:
            other = r.choice(("s z", "t z"))
            column = "z.a" if other == "s z" else "z.c"
            second = f"SELECT {column} FROM {other} WHERE {column} IN (1, 2)"
            return f"SELECT {a} AS o{body} UNION {r.choice(('', 'ALL '))}{second}"


def _tuple(
    r: random.Random,
    stream: str,
    read: Mapping[tuple[str, str], int],
    one: Mapping[str, int],
    codes: Mapping[int, str],
) -> tuple[object, ...]:
    """A whole tuple: what the example doesn't say may be anything that is admitted."""
    values: list[object] = []
    for name, kind in queries.COLUMNS[stream]:
        # A column that another occurrence of the stream reads is 0, as in the run of the example.
        number = one.get(name, read.get((stream, name)))
        if number == NULL:
            values.append(None)
        elif kind is Type.VARCHAR:
            values.append("x" if number is None else codes.get(number, f"text{number}"))
        elif kind is Type.BOOLEAN:
            values.append(bool(number))
        elif kind is Type.DOUBLE:
            values.append(float(r.randint(-1000, 1000)))
        elif number is None and name == "d":
            values.append(r.randint(-2, 3))
        else:
            values.append(r.randint(-1000, 1000) if number is None else number)
    return tuple(values)


def _told(
    reference: duckdb.DuckDBPyConnection, sql: str, stored: Sequence[Named], later: Sequence[Sequence[Named]]
) -> int:
    """How many subsets differ in what some completion adds."""
    return len({tuple(_added(reference, sql, subset, later)) for subset in _subsets(stored)})


def _subsets(stored: Sequence[Named]) -> Iterator[tuple[Named, ...]]:
    for count in range(len(stored) + 1):
        yield from itertools.combinations(stored, count)


def _added(
    reference: duckdb.DuckDBPyConnection,
    sql: str,
    subset: Sequence[Named],
    later: Sequence[Sequence[Named]],
) -> Iterator[frozenset[tuple[tuple[object, ...], int]]]:
    before = _rows(reference, sql, subset)
    for more in later:
        yield frozenset((_rows(reference, sql, [*subset, *more]) - before).items())


def _rows(reference: duckdb.DuckDBPyConnection, sql: str, tuples: Sequence[Named]) -> Rows:
    reference.execute("DELETE FROM s; DELETE FROM t")
    for name in "st":
        own = [one for stream, one in tuples if stream == name]
        if own:
            places = ", ".join(["(?, ?, ?, ?, ?)"] * len(own))
            reference.execute(f"INSERT INTO {name} VALUES {places}", list(itertools.chain(*own)))
    return Counter(reference.execute(sql).fetchall())
