"""JSON form of a plan, in Kafka and on the disk of an edge; strictly checked when it is read.

Every field must be there with its type and no other field, sizes are limited, names and expressions are
checked. Field names are those of `tamis.plan.model`; expressions are in `tamis.expressions.json_form`.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from tamis.errors import InputError
from tamis.plan.document import FORMAT, LARGEST, PLAN, PlanDocument
from tamis.plan.model import Plan
from tamis.plan.wire import LONGEST, UNREADABLE, wrong

# The beginning of an encoded plan: the version is found without reading the megabytes behind it.
_HEAD = re.compile(rb'\{"format":[0-9]{1,9},"version":([1-9][0-9]{0,17}),')


class _Format(Struct):
    format: int = 0


class _Version(Struct):
    version: Annotated[int, Meta(ge=1, le=2**63 - 1)]


class _Alert(Struct):
    alert: Annotated[str, Meta(max_length=LONGEST)]


class _Alerts(Struct):
    definitions: list[_Alert] = []
    standing: list[_Alert] = []


_FORMAT = msgspec.json.Decoder(_Format)
_VERSION = msgspec.json.Decoder(_Version)
_ALERTS = msgspec.json.Decoder(_Alerts)


# As msgspec says it. Fields are added without a new format: a plan has one only if a query needs it.
_UNKNOWN = "contains unknown field"


class NewerFormatError(InputError):
    """A plan of a newer registry, by its format or by a field: a newer release of the service can read it."""


def encode_plan(plan: Plan) -> bytes:
    """The plan's value in `tamis.plans`. Raises InputError if `decode_plan` would refuse it."""
    return PlanDocument(plan).json


def decode_plan(data: bytes) -> Plan:
    """The plan that `encode_plan` wrote. Raises InputError with the place of the mistake, and
    NewerFormatError for a plan of a later format or with unknown fields.
    """
    if len(data) > LARGEST:
        raise InputError(f"a plan of {len(data)} bytes; at most {LARGEST} are read", where="plan")
    try:
        found = _FORMAT.decode(data).format
    except UNREADABLE as error:
        raise wrong(error, "plan") from None
    if found > FORMAT:
        what = f"a plan of format {found}; this service reads format {FORMAT}"
        raise NewerFormatError(what, where="plan", hint="upgrade this service")
    if found != FORMAT:
        raise InputError(
            f"a plan of format {found}; this service reads format {FORMAT}",
            where="plan",
            hint="upgrade the service that wrote it; without a format number, the record isn't a plan",
        )
    try:
        return PLAN.decode(data, "plan")
    except InputError as error:
        if _UNKNOWN not in error.what:
            raise
        raise NewerFormatError(error.what, where=error.where, hint="upgrade this service") from None


def version_of(data: bytes) -> int:
    """The version of a plan's value. The other fields are not checked: `decode_plan` may still refuse them.

    Raises InputError if no version is found.
    """
    head = _HEAD.match(data)
    if head:
        return int(head[1])
    # JSON with other spaces or another order, such as a plan that was written by hand.
    try:
        return _VERSION.decode(data).version
    except UNREADABLE as error:
        raise wrong(error, "plan") from None


def alerts_of(data: bytes) -> set[str]:
    """The names of the alerts in a plan's value; the other fields are not checked.

    Raises InputError if the names can't be read.
    """
    try:
        found = _ALERTS.decode(data)
    except UNREADABLE as error:
        raise wrong(error, "plan") from None
    return {one.alert for one in (*found.definitions, *found.standing)}
