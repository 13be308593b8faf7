"""Wire types of a plan: a msgspec Struct with limits for each dataclass of the model, built from its fields.

msgspec checks names, types and limits while it parses, and refuses unknown fields for Structs only; the
code uses dataclasses. Three kinds of values need more than msgspec knows: expressions
(`tamis.expressions.json_form`), windows, and the records of which a plan has thousands. Those are left as
bytes while a plan is parsed, and a record with the same bytes as before becomes the same object as before:
reading it again would take ten times as long.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, cached_property
from types import GenericAlias, NoneType, UnionType
from typing import Annotated, Any, Generic, Optional, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from tamis.declarations.definitions import Window
from tamis.errors import InputError
from tamis.expressions.json_form import from_json, to_json
from tamis.expressions.nodes import Call, Column, Expr, Literal
from tamis.plan import conjunction, nodes
from tamis.plan.conjunction import Conjunction, Difference, Unequal
from tamis.plan.model import Definition, Entry, PartialAggregation, StandingQuery, StreamColumn
from tamis.plan.nodes import Alternative

LONGEST = 1_000  # characters of a name
MOST = 50_000  # items of one list or map
MOST_CACHED = 100_000  # entries and definitions as read
HINT = "is every service of the same release?"

# Errors of msgspec for input that it can't decode.
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

# Limits of fields without limits of their own.
_LIMITS: dict[Any, Meta] = {
    str: Meta(max_length=LONGEST),
    int: Meta(ge=0, le=2**63 - 1),
    float: Meta(ge=0, le=sys.float_info.max),
}
# A plan has thousands of these, and the next plan has most of them again.
_CACHED = (Entry, StreamColumn, Definition, StandingQuery)
# These fields came after the first release. A plan that doesn't need them is written without them, so that
# older services can read it.
_LATER = frozenset(
    (
        "window",
        "certificate",
        "kept",
        "counted",
        "standing",
        "proven",
        "max_ahead_given",
        "margins",
        "anew",
        "exact",
        "schema",
        "value_format",
        "time_unit",
        "base",
        "series_key",
        "watches",
        "offset",
        "cumulative",
        "besides",
        "null_keys",
        "window_functions",
        "exists",
        "absences",
        "former",
        "origin",
        "begin",
        "representation",
        "representatives",
        "partials",
    )
)

# Nothing of these was written before they had all of their fields: what has its default is left out.
_OPERATORS = frozenset(("tamis.plan.nodes", "tamis.plan.conjunction", "tamis.declarations.aggregates"))
# A plan has many of these, and their fields have no defaults that are worth leaving out.
_ARRAYS = (Difference, Unequal, conjunction.Node)
_FRACTION = "^[0-9]{1,30}(/[1-9][0-9]{0,29})?$"

T = TypeVar("T")
Read = Callable[
    [Any, str], Any
]  # a value of the wire type, and its place in the plan, to a value of the model
Write = Callable[[Any], Any]


class Record(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all wire types."""


class _IsExpression(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, (Column, Literal, Call))


class _Expression(metaclass=_IsExpression):
    """Stands for any expression in wire types: msgspec has no unions of dataclasses."""


class _IsColumn(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Column)


class _ColumnExpression(metaclass=_IsColumn):
    """Stands for an expression that must be a column."""


def _decoded(kind: type, value: object) -> Expr:
    expr = from_json(value)
    if kind is _ColumnExpression and not isinstance(expr, Column):
        raise ValueError("expected a column")
    return expr


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """A decoder of a type with expressions."""
    return msgspec.json.Decoder(kind, dec_hook=_decoded)


@dataclasses.dataclass(frozen=True)
class _Converter:
    """The wire type of a type of the model. `read` and `write`: None if both have the same values."""

    wire: Any
    read: Read | None = None
    write: Write | None = None


class WireType(Generic[T]):
    """The wire type of one dataclass, with the conversions from and to it."""

    def __init__(self, kind: type[T], *, tag: str | None = None, **more: Any) -> None:
        """`more`: fields of the wire type that the dataclass doesn't have. They come before the others.
        `tag`: the value of the field `type`, by which one of several types is told.
        """
        self._kind = kind
        hints = get_type_hints(kind, include_extras=True)
        fields: list[Any] = list(more.items())
        self._fields: list[tuple[str, Read | None, Write | None]] = []
        self._left_out: dict[str, object] = {}  # values of later fields that are not written
        self.later: set[str] = set()  # fields that plans may lack
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]
            found = _converter(hints[field.name])
            self._fields.append((field.name, found.read, found.write))
            of_operators = kind.__module__ in _OPERATORS and field.default is not dataclasses.MISSING
            if field.name not in _LATER and not of_operators:
                fields.append((field.name, found.wire))
                continue
            self.later.add(field.name)
            if field.default is None:  # never written as null
                fields.append((field.name, _without_none(found.wire) | UnsetType, UNSET))
            else:
                fields.append((field.name, found.wire, field.default))
                self._left_out[field.name] = field.default
        self.struct: type[Any] = msgspec.defstruct(
            kind.__name__,
            fields,
            bases=(Record,),
            frozen=True,
            kw_only=kind not in _ARRAYS,
            tag=tag,
            array_like=kind in _ARRAYS,
        )
        self._decoder: msgspec.json.Decoder[Any] = decoder(self.struct)
        self._known: dict[bytes, T] = {}

    def decode(self, data: bytes, place: str) -> T:
        """The value of the model. Raises InputError with the place of the mistake."""
        try:
            record: Record = self._decoder.decode(data)
        except UNREADABLE as error:
            raise wrong(error, place) from None
        try:
            return self.read(record, place)
        except RecursionError as error:
            raise wrong(error, place) from None

    def read(self, record: Record, place: str) -> T:
        """The value of the model. Raises InputError with the place of the mistake."""
        given = {}
        for name, read, _ in self._fields:
            value = getattr(record, name)
            if value is not UNSET:
                given[name] = value if read is None else read(value, f"{place}.{name}")
        found = self._kind(**given)
        if (reason := _inconsistent(found)) is not None:
            raise InputError(reason, where=place, hint=HINT)
        return found

    def read_cached(self, data: Raw, place: str) -> T:
        """`decode`; the same object for the same bytes."""
        text = bytes(data)
        found = self._known.get(text)
        if found is None:
            found = self.decode(text, place)
            if len(self._known) >= MOST_CACHED:
                self._known.clear()
            self._known[text] = found
        return found

    def write(self, value: T, **given: Any) -> Record:
        """The value for the encoder. The fields in `given`, already values of the wire type, replace the
        value's own.
        """
        fields = {}
        for name, _, convert in self._fields:
            if name in given:
                continue
            mine = getattr(value, name)
            if name in self._left_out and mine == self._left_out[name]:
                continue  # msgspec leaves out the default itself, but not an equal string
            if mine is not None:
                fields[name] = mine if convert is None else convert(mine)
            elif name not in self.later:
                fields[name] = None
        found: Record = self.struct(**fields, **given)
        return found


class Variants:
    """Values of one of several dataclasses: a record with its type. They stay bytes while a plan is parsed,
    so that a type may contain others of them.
    """

    def __init__(self, kinds: tuple[type[Any], ...]) -> None:
        self._kinds = kinds

    @cached_property
    def _types(self) -> dict[type[Any], WireType[Any]]:
        return {kind: WireType(kind, tag=kind.__name__) for kind in self._kinds}

    @cached_property
    def _decoder(self) -> msgspec.json.Decoder[Any]:
        several: Any = Union[tuple(one.struct for one in self._types.values())]  # noqa: UP007
        return decoder(several)

    @cached_property
    def _by_struct(self) -> dict[type[Any], WireType[Any]]:
        return {one.struct: one for one in self._types.values()}

    def read(self, data: Raw, place: str) -> Any:
        """The value of the model. Raises InputError with the place of the mistake."""
        try:
            record = self._decoder.decode(data)
        except UNREADABLE as error:
            raise wrong(error, place) from None
        return self._by_struct[type(record)].read(record, place)

    def write(self, value: Any) -> Record:
        """The value for the encoder."""
        return self._types[type(value)].write(value)


def _inconsistent(value: object) -> str | None:
    """The reason why the fields of a record don't fit together, beyond their types; None if they do."""
    match value:
        case Window() if value.slide < 1 or value.size < 1 or value.size % value.slide:
            return "expected a slide that divides the size"
        case Window() if value.offset >= (value.size if value.cumulative else value.slide):
            return "expected an offset less than the distance of starts"
        case Conjunction():
            return value.inconsistent()
        case PartialAggregation() if not value.grids or value.grouping.select or value.grouping.having:
            return "expected grids, and neither SELECT nor HAVING"
        case nodes.Union() | nodes.ApplicationTime() if not value.members:
            return "expected a SELECT"
        case Alternative():
            conjunction_ = value.conjunction
            if len(value.conditions) != len(conjunction_.streams):
                return "expected the conditions of each occurrence"
            if value.extreme is not None and not 0 < value.extreme[0] < conjunction_.size:
                return "expected the number of a node"
            if {stays for _, stays in value.stands} - set(conjunction_.aliases):
                return "expected the alias of an occurrence"
    return None


@cache
def variants(kinds: tuple[type[Any], ...]) -> Variants:
    """The wire form of values of several dataclasses."""
    return Variants(kinds)


@cache
def wire_type(kind: type[T]) -> WireType[T]:
    """The wire type of a dataclass."""
    return WireType(kind)


def _converter(hint: Any) -> _Converter:
    """The wire type of a field's type, put together from the wire types of its parts."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _Converter(hint)  # it has limits of its own
    if hint in _LIMITS:
        return _Converter(Annotated[hint, _LIMITS[hint]])
    if hint is Fraction:
        return _Converter(Annotated[str, Meta(pattern=_FRACTION)], lambda text, _: Fraction(text), str)
    if hint is Column:
        return _Converter(_ColumnExpression, write=to_json)
    if origin in (Union, UnionType):
        return _optional(args)
    if dataclasses.is_dataclass(hint):
        known: WireType[Any] = wire_type(hint)  # type: ignore[arg-type]
        return (
            _Converter(Raw, known.read_cached, known.write)
            if hint in _CACHED
            else _Converter(known.struct, known.read, known.write)
        )
    if origin is dict:
        inner = [_converter(arg).wire for arg in args]
        return _Converter(Annotated[dict[inner[0], inner[1]], Meta(max_length=MOST)])  # type: ignore[valid-type]
    if origin is tuple:
        return _items(args)
    if origin is Sequence:
        return _items((*args, Ellipsis))
    return _Converter(hint)


def _optional(args: tuple[Any, ...]) -> _Converter:
    """A type or None. All kinds of expressions together count as one type."""
    kinds = [arg for arg in args if arg is not NoneType]
    if Call in kinds:
        found = _Converter(_Expression, write=to_json)
    elif len(kinds) > 1:
        several = variants(tuple(kinds))
        found = _Converter(Raw, several.read, several.write)
    else:
        found = _converter(kinds[0])
    read = found.read
    if NoneType not in args:
        return found
    return _Converter(
        Optional[found.wire],  # noqa: UP045 (the type is only known here)
        None if read is None else lambda value, place: None if value is None else read(value, place),
        found.write,
    )


def _without_none(wire: Any) -> Any:
    return Union[tuple(arg for arg in get_args(wire) if arg is not NoneType)]  # noqa: UP007


def _items(args: tuple[Any, ...]) -> _Converter:
    """A tuple of any length, or of a fixed one."""
    many = len(args) == 2 and args[1] is Ellipsis
    inner = [_converter(arg) for arg in args if arg is not Ellipsis]
    writes = [one.write for one in inner]
    if not many:
        wire: Any = GenericAlias(tuple, tuple(one.wire for one in inner))
        return _Converter(wire, write=lambda values: tuple(map(_written, writes, values)))
    (item,) = inner
    read, write = item.read, item.write
    return _Converter(
        Annotated[tuple[item.wire, ...], Meta(max_length=MOST)],  # type: ignore[name-defined]
        None
        if read is None
        else lambda values, place: tuple(read(value, f"{place}[{i}]") for i, value in enumerate(values)),
        None if write is None else lambda values: tuple(map(write, values)),
    )


def _written(write: Write | None, value: Any) -> Any:
    return value if write is None else write(value)


_PLACE = re.compile(r"(.*?)(?: - at `(?:key in )?\$(.*)`)?", re.DOTALL)


def wrong(error: Exception, place: str) -> InputError:
    """An error of msgspec as an InputError. Its place is `place` and the path that msgspec names."""
    if isinstance(error, RecursionError):
        return InputError("nested too deep", where=place, hint=HINT)
    found = _PLACE.fullmatch(str(error))
    what, path = (str(error), None) if found is None else found.groups()
    if isinstance(error, msgspec.ValidationError):
        return InputError(what[:1].lower() + what[1:], where=place + (path or ""), hint=HINT)
    return InputError(f"not JSON: {what}", where=place)
