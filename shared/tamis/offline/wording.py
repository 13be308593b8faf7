"""Wording: how messages name what a caller gives, options of a command or arguments of a function."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Wording:
    """Names for messages. In the fields with braces, `{}` is the name of a stream."""

    inputs: str  # all recordings together
    input: str  # the recording of one stream, `{}`
    add: str  # the recording of one stream, `{}`, as it is given
    query: str
    time_unit: str
    interval: str
    max_delay: str
    explain: str  # what says why a query is refused
    or_unit: str  # what can be given besides a number in the unit of the times, behind that
    recording: str = "recording"  # that of a stream, in a sentence
    stream: str = "stream"
    value: str = "value"
    time: str = "time="  # what names the column of the times


COMMAND = Wording(
    inputs="--input",
    input="--input {}=",
    add="--input {}=FILE",
    query="--query",
    time_unit="--time-unit",
    interval="--interval",
    max_delay="--max-delay",
    explain="tamis explain",
    or_unit="",
    stream="--stream",
    value="--value",
    time="--time",
)

REQUEST = Wording(
    inputs="samples",
    input="samples.{}",
    add='"{}": [READING, …]',
    query="the parameter query",
    time_unit="time_unit of the request",
    interval="interval",
    max_delay="max_delay",
    explain="POST /v1/explain",
    or_unit="",
)

FUNCTION = Wording(
    inputs="frames",
    input="frame {}",
    add='"{}": frame',
    query="the argument query",
    time_unit="the argument time_unit",
    interval="interval",
    max_delay="max_delay",
    explain="tamis.explain",
    or_unit=", or the argument time_unit",
    recording="frame",
)
