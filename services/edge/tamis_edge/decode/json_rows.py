"""JSON payloads of a micro-batch to Python objects, by a single call of the parser if all are valid."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

import orjson

from tamis.messaging.dead_letters import Reason
from tamis.query.file_text import wide_encoding
from tamis.recordings.json_structure import ComplexityError, check_complexity, loads
from tamis.recordings.json_values import Offence


def parse(payloads: Sequence[bytes], limit: int) -> tuple[list[dict[str, Any]], list[Offence]]:
    """The object of each payload, and the mistakes. The object is `{}` for a payload that isn't a JSON
    object, or has more than `limit` bytes.
    """
    rows: list[Any] | None = None
    if max(map(len, payloads), default=0) <= limit:
        rows = _parse_together(payloads)
    offences: list[Offence] = []
    if rows is None:
        rows = []
        for i, payload in enumerate(payloads):
            try:
                rows.append(_parse_one(payload, limit))
            except _Refused as refused:
                offences.append(Offence(i, refused.reason, str(refused)))
                rows.append({})
    if set(map(type, rows)) - {dict}:
        for i, row in enumerate(rows):
            if type(row) is not dict:
                error = f"a JSON {_NAMES[type(row)]}, not an object; send one object a reading"
                offences.append(Offence(i, Reason.UNDECODABLE, error))
                rows[i] = {}
    return rows, offences


_NAMES = {
    list: "array",
    str: "string",
    int: "number",
    float: "number",
    bool: "boolean",
    type(None): "null",
}

# Between payloads that are parsed as one array. No sender can know it: without it two crafted payloads that
# only together are JSON could pass for others.
_FENCE = secrets.token_hex(16)
_JOINT = b',"%s",' % _FENCE.encode()


def _parse_together(payloads: Sequence[bytes]) -> list[Any] | None:
    try:
        for payload in payloads:
            check_complexity(payload)
        found = orjson.loads(b"[" + _JOINT.join(payloads) + b"]")
    except (ComplexityError, orjson.JSONDecodeError):
        return None
    rows: list[Any] = found[::2]
    fences = found[1::2]
    # The last payload may be two values with a comma between: then there is one more than the fences.
    if len(found) != 2 * len(payloads) - 1 or fences.count(_FENCE) != len(fences):
        return None
    return rows


class _Refused(Exception):
    def __init__(self, reason: Reason, error: str) -> None:
        super().__init__(error)
        self.reason = reason


def _parse_one(payload: bytes, limit: int) -> Any:
    if len(payload) > limit:
        raise _Refused(Reason.TOO_LARGE, f"{len(payload)} bytes; the limit is {limit}")
    try:
        return loads(payload)
    except orjson.JSONDecodeError as error:
        wide = wide_encoding(payload)
        if wide is not None:
            raise _Refused(Reason.UNDECODABLE, f"not JSON: {wide}, and not UTF-8; send it in UTF-8") from None
        raise _Refused(Reason.UNDECODABLE, f"not JSON: {error}") from None
    except ComplexityError as error:
        raise _Refused(Reason.UNDECODABLE, str(error)) from None
