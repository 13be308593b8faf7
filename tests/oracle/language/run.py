"""One random query of the whole language through the fleet, compared with DuckDB."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.oracle.language.expressions import FUNCTIONS
from tests.oracle.language.queries import RandomQuery
from tests.oracle.language.readings import RandomReadings
from tests.oracle.language.reference import Alarm, Reference, Values, differences
from tests.oracle.language.sharded_fleet import ShardedFleet

from tamis.errors import NotAcceptedError, SqlErrors
from tamis.plan.model import Definition
from tamis.planning.build import first_plan
from tamis.planning.explain import explain
from tamis.query.parse import catalog_of


@dataclass(frozen=True)
class Outcome:
    """Result of one query. `refusal`: the reason why it was refused."""

    query: RandomQuery
    refusal: str | None = None
    rows: int = 0
    alarms: int = 0
    bound: int | None = None
    most: int = 0


@dataclass(frozen=True)
class Played:
    """An accepted query after its run. `definition`: its definition, if it is a join by time; `most`: its
    greatest live state.
    """

    query: RandomQuery
    readings: RandomReadings
    sql: str
    definition: Definition | None
    bound: int | None
    alarms: list[Alarm]
    most: int


@dataclass(frozen=True)
class Refused:
    """A query that Tamis refuses."""

    query: RandomQuery
    readings: RandomReadings
    sql: str
    reason: str


def play(seed: int, table: Path) -> Played | Refused:
    """Plan one query, and run it in the fleet."""
    query = RandomQuery(seed)
    r = random.Random(seed + 1)
    readings = RandomReadings(r, query.streams, steady=query.steady, apart=query.apart)
    sql = statements_of(query, readings, table)
    try:
        catalog = catalog_of(sql)
        plan = first_plan(catalog, shards={one.name: one.stream for one in readings.shards})
    except (SqlErrors, NotAcceptedError) as error:
        return Refused(query, readings, sql, str(error))
    fleet = ShardedFleet(plan, readings, r)
    fleet.play()
    definition = next((one for one in plan.definitions if one.alert == "q"), None)
    bound = explain(catalog, "q").memory.bound
    return Played(query, readings, sql, definition, bound, list(fleet.alarms.values()), fleet.most)


def statements_of(query: RandomQuery, readings: RandomReadings, table: Path) -> str:
    """The query behind the statements of the streams, functions and the table that it uses."""
    used = FUNCTIONS if re.search(r"(heat|twice)\(", query.sql) else ""
    if " JOIN r " in query.sql:
        columns = "key VARCHAR, region VARCHAR, low INT, factor DOUBLE"
        used += f"CREATE TABLE r ({columns}) WITH (path = '{table}');"
    return f"{readings.statements}\n{used}\n{query.sql}"


def run(seed: int, reference: Reference, table: Path) -> Outcome:
    """Play one query. Fails if rows differ from DuckDB's, if the live state passes the bound, or if a query
    that has rows is refused because it never has a row.
    """
    played = play(seed, table)
    rows = reference.rows(played.query, played.readings)
    if isinstance(played, Refused):
        assert played.reason, played.sql
        _check_refusal(played, rows, reference)
        return Outcome(played.query, played.reason)
    missed, extra = differences_of(played, rows, played.alarms)
    about = f"{played.sql}\n{played.query.duck}"
    assert not missed and not extra, f"seed {seed}: missed {missed[:5]}, extra {extra[:5]}\n{about}"
    assert played.bound is None or played.most <= played.bound, f"seed {seed}: {played.most}\n{about}"
    return Outcome(played.query, None, len(rows), len(played.alarms), played.bound, played.most)


def _check_refusal(refused: Refused, rows: Sequence[Values], reference: Reference) -> None:
    """Fail if a query that is said to have no row has one. Where the reason names a derived stream, it speaks
    of this stream: an alert with UNION or NOT EXISTS over it can have rows.
    """
    if "never has a row" not in refused.reason:
        return
    of = re.match(r"stream (\w+): ", refused.reason)
    if of and of[1] in refused.query.named:
        rows = reference.rows(refused.query, refused.readings, of[1])
    elif refused.query.negated:
        return
    assert not rows, f"seed {refused.query.seed}: {refused.reason}\n{refused.sql}"


def differences_of(
    played: Played, rows: Sequence[Values], alarms: Sequence[Alarm]
) -> tuple[list[Any], list[Any]]:
    """The rows of DuckDB for which there is no alarm, and the alarms without a row."""
    return differences(played.query, rows, played.readings, alarms, played.definition)


def kind_of(refusal: str) -> str:
    """The reason without names and numbers."""
    first = refusal.splitlines()[0]
    first = re.sub(r"^.*?: (?=[a-z])", "", first, count=1)
    return re.sub(r"\b[a-z]+\d+\b|\d+|'[^']*'|\b\w+\.\w+\b", "_", first)[:90]
