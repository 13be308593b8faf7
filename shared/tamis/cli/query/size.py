"""`tamis size`: how many partitions, cores, and how much memory, disk and traffic a fleet needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar, get_args

import click

from tamis.cli.common.options import Choice
from tamis.cli.common.output import say, write, write_json
from tamis.cli.common.recordings import as_arrived_option, files_of
from tamis.cli.common.sql_file import statements_of
from tamis.declarations.streams import StreamDef
from tamis.declarations.units import parse_duration, parse_rate
from tamis.errors import InputError
from tamis.offline.recordings import warn_of_absent_columns, watched_recording
from tamis.query.model import AlertDef, Catalog, DerivedDef
from tamis.recordings.files import Format
from tamis.recordings.times import TimeUnit
from tamis.recordings.typed import read_recording
from tamis.sizing.estimate import document, estimate, text
from tamis.sizing.figures import unit_costs
from tamis.sizing.fleet import Operation
from tamis.sizing.load import Given, StreamLoad, load_of
from tamis.wording.names import normalized_name, suggest

T = TypeVar("T")

# More than any fleet has. Numbers without a limit would overflow in the estimates.
MOST_KEYS = 10**12
MOST_PARTS = 10**6


@click.command(
    epilog="""\b
Examples:
  tamis size demo/first/alerts.sql
  tamis size demo/first/alerts.sql --rate air=5000/s --rate surface=5000/s --retained air=10% --outage 2h
  tamis size demo/first/alerts.sql --input air=demo/first/air.csv --input surface=demo/first/surface.csv
"""
)
@click.argument("source", metavar="FILE.sql")
@click.option(
    "--rate", "rates", multiple=True, metavar="STREAM=N/s", help="Readings of all keys of a stream."
)
@click.option("--keys", "keys", multiple=True, metavar="STREAM=N", help="Number of keys of a stream.")
@click.option(
    "--retained",
    multiple=True,
    metavar="STREAM=N%",
    help="Share of the readings that edges publish to each topic.",
)
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="STREAM=FILE",
    help="A recording: the retained share is measured by replaying it through the filters and the omission.",
)
@click.option(
    "--time-unit",
    "unit",
    type=Choice(get_args(TimeUnit)),
    help="The unit of times that are numbers in recordings; they count from 1970. By default the time_unit "
    "of the stream, or us.",
)
@click.option(
    "--format",
    "form",
    type=Choice(["csv", "ndjson", "parquet"]),
    help="Format of recordings without a known extension.",
)
@as_arrived_option
@click.option("--alarms", metavar="N/s", help="Alarms of all alerts.")
@click.option(
    "--edges",
    type=click.IntRange(1, MOST_PARTS),
    help="Number of edges that share the readings.  [default: 1]",
)
@click.option(
    "--partitions", type=click.IntRange(1, MOST_PARTS), help="Partition count of the fleet, if it is decided."
)
@click.option("--retention", metavar="DURATION", help="Retention of the stream topics.  [default: 1d]")
@click.option(
    "--replication", type=click.IntRange(1, MOST_PARTS), help="Replicas of each topic.  [default: 3]"
)
@click.option(
    "--outage",
    metavar="DURATION",
    help="Longest time for which edges must do without Kafka.  [default: 30min]",
)
@click.option("--json", "as_json", is_flag=True, help="Print only one JSON document.")
def command(
    source: str,
    rates: tuple[str, ...],
    keys: tuple[str, ...],
    retained: tuple[str, ...],
    inputs: tuple[str, ...],
    unit: TimeUnit | None,
    form: Format | None,
    as_arrived: bool,
    alarms: str | None,
    edges: int | None,
    partitions: int | None,
    retention: str | None,
    replication: int | None,
    outage: str | None,
    as_json: bool,
) -> None:
    """Estimate how many partitions and cores, and how much memory, disk and network traffic, a fleet needs.

    Each number says where it comes from: proven (as tamis explain proves it), measured (a unit cost of this
    version of Tamis, or a recording), given (an option), declared (in the SQL), computed from such numbers,
    or assumed. A number that is computed from an assumed number is also called assumed.

    Without --retained and --input, every reading is expected to be retained: the worst case.

    The exit code is 0, 1 if a query is refused, and 2 if the input is wrong.
    """
    catalog, _ = statements_of(source)
    if not catalog.alerts and not catalog.derived:
        raise InputError("no query to size", where=source, hint="add a CREATE ALERT statement")
    read = _streams_read(catalog)
    numbers = _of_streams("--rate", rates, catalog, parse_rate, "air=100/s")
    counts = _of_streams("--keys", keys, catalog, _count, "air=1000")
    shares = _of_streams("--retained", retained, catalog, _share, "air=10%")
    files = files_of(inputs, source, catalog)
    for name in files:
        _stream(name, catalog, f"--input {name}=")
    recordings = {
        name: read_recording(
            catalog.streams[name], paths, form, unit, absent_is_null=True, as_arrived=as_arrived
        )
        for name, paths in files.items()
    }
    for name, recording in recordings.items():
        warn_of_absent_columns(name, recording, say)

    def load(stream: StreamDef) -> StreamLoad:
        name = stream.shown_name
        recording = recordings.get(name)
        if recording is not None and stream.watches:
            recording = watched_recording(recording, stream)
        return load_of(stream, Given(numbers.get(name), counts.get(name), shares.get(name), recording))

    loads = {name: load(catalog.streams[name]) for name in read}
    options = {"edges": edges, "partitions": partitions, "replication": replication, "outage": outage}
    operation = Operation(
        retention=None if retention is None else _positive("--retention", retention),
        replication=replication or 3,
        outage=Operation.outage if outage is None else _positive("--outage", outage),
        edges=edges or 1,
        partitions=partitions,
        alarms=None if alarms is None else _at("--alarms", alarms, parse_rate),
        given=frozenset(name for name, value in options.items() if value is not None),
    )
    found = estimate(catalog, loads, operation, unit_costs())
    if as_json:
        write_json(document(found))
    else:
        write(text(found))


def _streams_read(catalog: Catalog) -> list[str]:
    """The raw and watched streams that the queries read, directly or through derived streams."""
    queries: list[AlertDef | DerivedDef] = [*catalog.alerts.values(), *catalog.derived.values()]
    names = dict.fromkeys(source.stream for one in queries for source in one.query.sources)
    return [name for name in names if name in catalog.streams]


def _of_streams(
    option: str, given: Iterable[str], catalog: Catalog, parse: Callable[[str], T], example: str
) -> dict[str, T]:
    """The values of an option STREAM=VALUE by stream."""
    found: dict[str, T] = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not (name and equals and value):
            raise InputError(
                f"{one!r} has no stream and value", where=option, hint=f"write {option} {example}"
            )
        stream = _stream(name, catalog, f"{option} {one}").name
        if stream in found:
            raise InputError(
                f"the stream {stream!r} has a value already", where=f"{option} {one}", hint="give one value"
            )
        found[stream] = _at(f"{option} {one}", value, parse)
    return found


def _stream(name: str, catalog: Catalog, where: str) -> StreamDef:
    streams = catalog.raw_streams
    known = normalized_name(name, streams)
    if known not in streams:
        raise InputError(
            f"there is no stream {name!r}",
            where=where,
            hint=suggest(known, streams, f"the file has {', '.join(streams) or 'none'}"),
        )
    return streams[known]


def _at(where: str, value: str, parse: Callable[[str], T]) -> T:
    """A parsed value; an error names the option."""
    try:
        return parse(value)
    except InputError as error:
        raise InputError(error.what, where=where, hint=error.hint) from None


def _positive(option: str, value: str) -> int:
    found = _at(f"{option} {value}", value, parse_duration)
    if found <= 0:
        raise InputError(
            f"'{value}' isn't a positive duration", where=f"{option} {value}", hint="write 30min or 7d"
        )
    return found


def _count(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 13 and 0 < int(value) <= MOST_KEYS):
        raise InputError(
            f"'{value}' isn't a number of keys", hint="write a whole number up to 10^12, such as 1000"
        )
    return int(value)


def _share(value: str) -> float:
    hint = "write a percentage from 0% to 100%, such as 10%"
    try:
        share = float(value.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not value.endswith("%") or not 0 <= share <= 1:
        raise InputError(f"'{value}' isn't a share", hint=hint)
    return share
