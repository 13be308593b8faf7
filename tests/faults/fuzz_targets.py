"""Readers of bytes that come from outside, as targets of a fuzzer: each accepts, or refuses with a reason."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import orjson
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.text_format import Parse
from tests.unit.edge.plans import air, entry, plan, topic

from tamis.errors import InputError, SqlErrors
from tamis.messaging.records import Ack, Frontier, StreamState, read_ack, read_frontier
from tamis.messaging.schemas.registry import WriterSchema
from tamis.messaging.schemas.wire_format import header
from tamis.plan.json_form import decode_plan, encode_plan
from tamis.plan.parts import cut
from tamis.query.parse import catalog_of, parse
from tamis_alerts.episodes_app import read_alarm
from tamis_edge.decode.decoder import Decoded, Decoder
from tamis_edge.source_fields import FieldMap
from tamis_edge.sources.http import TooManyError, split
from tamis_registry.kafka.reports import read_observation

NOW = 1_700_000_000_000_000
SQL_FILES = Path(__file__).parent.parent / "fixtures" / "sql"
STREAM = air([topic([entry(0)])], columns=("station", "ts", "temp", "site", "n", "ok"), max_ahead=600_000_000)
READING = {"station": "k1", "ts": NOW, "temp": 20.5, "site": "s", "n": 3, "ok": True}

AVRO = {
    "type": "record",
    "name": "Reading",
    "fields": [
        {"name": "station", "type": "string"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "temp", "type": ["null", "double"]},
        {"name": "site", "type": {"type": "enum", "name": "Site", "symbols": ["A", "B"]}},
        {"name": "n", "type": {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 2}},
        {"name": "ok", "type": "boolean"},
    ],
}
PROTOBUF = Parse(
    """
    name: "reading.proto" syntax: "proto3" dependency: "google/protobuf/timestamp.proto"
    message_type {
      name: "Reading"
      field { name: "station" number: 1 label: LABEL_OPTIONAL type: TYPE_STRING }
      field { name: "ts" number: 2 label: LABEL_OPTIONAL type: TYPE_MESSAGE
              type_name: ".google.protobuf.Timestamp" }
      field { name: "temp" number: 3 label: LABEL_OPTIONAL type: TYPE_DOUBLE }
      field { name: "site" number: 4 label: LABEL_OPTIONAL type: TYPE_STRING }
      field { name: "n" number: 5 label: LABEL_OPTIONAL type: TYPE_SINT64 }
      field { name: "ok" number: 6 label: LABEL_OPTIONAL type: TYPE_BOOL }
    }
    """,
    FileDescriptorProto(),
)


@dataclass(frozen=True)
class Target:
    """A reader of bytes. `read` returns normally for input that is accepted or refused with a reason, and
    raises anything for input that it can't handle. `seeds`: valid inputs. `words`: parts of valid inputs.
    """

    read: Callable[[bytes], None]
    seeds: Sequence[bytes]
    words: Sequence[str] = ()


def _decoder_target(decode: Callable[[Decoder, list[bytes]], Decoded], seeds: Sequence[bytes]) -> Target:
    decoder = Decoder(STREAM, FieldMap({}, "us"))

    def read(data: bytes) -> None:
        # A good reading on each side: what is between must not change it.
        payloads = [seeds[0], data, seeds[0]]
        decoded = decode(decoder, payloads)
        refused = [offence.row for offence in decoded.offences]
        assert sorted([*decoded.rows.tolist(), *refused]) == [0, 1, 2], (decoded.rows, refused)
        assert all(offence.row == 1 and offence.error for offence in decoded.offences)
        assert {len(vector.data) for vector in decoded.columns.values()} == {len(decoded.rows)}

    return Target(read, seeds, tuple(f'"{name}"' for name in READING))


def _refusing(
    read: Callable[[bytes], object], refusals: tuple[type[Exception], ...]
) -> Callable[[bytes], None]:
    """The reader, whose refusals must say why."""

    def checked(data: bytes) -> None:
        refusal: Exception | None = None
        try:
            read(data)
        except refusals as error:
            refusal = error
        assert refusal is None or str(refusal)
        if isinstance(refusal, SqlErrors):
            assert refusal.errors
            assert all(one.what and one.hint and one.position for one in refusal.errors)

    return checked


def _split(data: bytes) -> None:
    for kind in ("application/json", "application/x-ndjson"):
        try:
            readings = split(data, kind)
        except (ValueError, TooManyError):
            continue
        assert all(isinstance(one, bytes) for one in readings)


def _avro() -> Target:
    schema = WriterSchema(1, "AVRO", json.dumps(AVRO))
    row = b"\x04k1" + _zigzag(NOW) + b"\x02" + b"\0\0\0\0\0\x004@" + b"\x00" + b"\x04\x01\x2c" + b"\x01"
    return _decoder_target(
        lambda decoder, payloads: decoder.with_schemas(payloads, _Always(schema), NOW), [header(1) + row]
    )


def _protobuf() -> Target:
    schema = WriterSchema(1, "PROTOBUF", base64.b64encode(PROTOBUF.SerializeToString()).decode())
    row = b"\x0a\x02k1\x12\x06\x08\x80\xe2\xcf\xaa\x06\x19\0\0\0\0\0\x004@\x22\x01A\x28\x06\x30\x01"
    return _decoder_target(
        lambda decoder, payloads: decoder.with_schemas(payloads, _Always(schema), NOW),
        [header(1) + b"\x00" + row],
    )


class _Always(dict[int, WriterSchema]):
    """One schema under every number."""

    def __init__(self, schema: WriterSchema) -> None:
        self._schema = schema

    def __getitem__(self, number: int) -> WriterSchema:
        return self._schema


def _zigzag(number: int) -> bytes:
    """A number as Avro writes it."""
    number, out = number << 1, bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _sql() -> Target:
    base = catalog_of((SQL_FILES / "base.sql").read_text())
    seeds = [path.read_bytes() for path in sorted(SQL_FILES.rglob("*.sql"))]
    # One statement at a time: the fuzzer then finds more in the same time.
    parts = [part.strip() + b";" for seed in seeds for part in seed.split(b";") if 10 < len(part) < 400]
    words = sorted({word for part in parts for word in part.decode().split() if len(word) > 1})

    def read(data: bytes) -> None:
        parse(data.decode(errors="surrogateescape"), base)

    # Instrumented, a statement takes 20 ms: every eighth leaves time to change them.
    return Target(_refusing(read, (SqlErrors,)), parts[::8], words)


def _plan() -> Target:
    seed = encode_plan(plan(air([topic([entry(0), entry(30_000_000)])]), ["air:h/http"]))
    whole = _refusing(decode_plan, (InputError,))
    part = _refusing(lambda data: decode_plan(cut(data, ["air"])), (InputError,))

    def read(data: bytes) -> None:
        whole(data)
        part(data)

    return Target(read, [seed], [f'"{key}"' for key in _names(orjson.loads(seed))])


def _names(value: object) -> set[str]:
    """The names of all fields in a JSON value."""
    if isinstance(value, dict):
        return {*value, *(name for one in value.values() for name in _names(one))}
    if isinstance(value, list):
        return {name for one in value for name in _names(one)}
    return set()


def _reports() -> Target:
    ack = Ack("air:h/http", "air", "h", 1, 0, "active", NOW)
    state = StreamState(frontier=NOW, tuples=1, bytes=1, void=False)
    frontier = Frontier(0, 1, {"tamis.stream.air.1": state}, {}, {}, 0, 0, NOW)
    seeds = [ack.to_bytes(), frontier.to_bytes(), b'{"shard": "a", "stream": "air", "sketch": {}}']

    def read(data: bytes) -> None:
        for key, one in ((b"air:h/http", read_ack), (b"0", read_frontier), (b"a", read_observation)):
            try:
                one(key, data)
            except ValueError:  # the registry names the record and goes on
                continue

    return Target(read, seeds)


def _alarm() -> Target:
    seed = b'{"alert":"hot","id":"x","key":["k"],"event_time":1,"row":{"t":1},"arrived":5}'
    refusals = (ValueError, msgspec.MsgspecError)  # those that `read_batch` catches
    return Target(_refusing(lambda data: read_alarm(b'["hot","k"]', data), refusals), [seed])


def target(name: str) -> Target:
    """The target of a name in `TARGETS`."""
    return TARGETS[name]()


TARGETS: Mapping[str, Callable[[], Target]] = {
    "json": lambda: _decoder_target(
        lambda decoder, payloads: decoder.payloads(payloads, NOW), [orjson.dumps(READING)]
    ),
    "avro": _avro,
    "protobuf": _protobuf,
    "bodies": lambda: Target(_split, [orjson.dumps([READING]), orjson.dumps(READING) + b"\n{}\n"]),
    "plans": _plan,
    "sql": _sql,
    "reports": _reports,
    "alarms": _alarm,
}
