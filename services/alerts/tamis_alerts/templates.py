"""Templates of notifications: Jinja2 in a sandbox, checked when the configuration is read.

A template only reads values. It calls nothing but `range` and `items()`. Its loops, its output and the
values that it gets and makes are limited (`template_limits`), so that each rendering takes limited time and
memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Annotated, Any

import orjson
from jinja2 import StrictUndefined, Template, TemplateError, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import AfterValidator, Field

from tamis_alerts.core.notifications import Notification, event_id, iso_time
from tamis_alerts.template_limits import (
    FILTERS,
    LIMITS,
    MOST_OUTPUT,
    Limits,
    RenderError,
    check_size,
    finalize,
    limited,
    with_limits,
)

MOST_SOURCE = 20_000  # characters of a template
MOST_TEXT = 2_000  # characters of a text in a row, a key or a label: longer ones are cut
MOST_RANGE = 1_000
MOST_LOOPS = 2  # one within another
_MOST_FACTOR = 10**15

_FILTERS = {
    *("abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float", "format"),
    *("int", "items", "join", "last", "length", "list", "lower", "max", "min", "replace", "reverse", "round"),
    *("sort", "string", "sum", "title", "tojson", "trim", "truncate", "unique", "upper", "urlencode"),
}
_NODES = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Name, nodes.Const),
    *(nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair, nodes.CondExpr, nodes.Getattr, nodes.Getitem),
    *(nodes.Slice, nodes.Concat, nodes.Compare, nodes.Operand, nodes.Not, nodes.And, nodes.Or, nodes.Add),
    *(nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Neg, nodes.Pos, nodes.Test),
    *(nodes.Filter, nodes.Keyword, nodes.Call),
)
_NAMES = frozenset(
    {
        *("alert", "key", "severity", "labels", "event", "episode", "id", "start", "end", "seconds"),
        *("alarms", "row", "columns", "link", "range"),
    }
)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """The result of `+`, `*` and `%`, of which some would make texts of any length."""
        check_size(left, right)
        if operator == "*" and not all(_is_factor(value) for value in (left, right)):
            raise ValueError("only numbers up to 10^15 can be multiplied")
        if operator == "%" and isinstance(left, str):
            _check_format(left)
        return super().call_binop(context, operator, left, right)


def _is_factor(value: object) -> bool:
    return isinstance(value, (int, float)) and abs(value) <= _MOST_FACTOR


def _check_format(form: str) -> None:
    # A width like %9999999d, or one that a value gives as in %*d, would make a text of any length.
    digits = 0
    for sign in form:
        digits = digits + 1 if sign.isdigit() else 0
        if digits > 2 or sign == "*":
            raise ValueError("a format has no `*`, and no number of more than two digits")


def _format(form: str, *values: Any) -> str:
    _check_format(form)
    return form % values


def _range(*limits: int) -> range:
    found = range(*limits)
    if len(found) > MOST_RANGE:
        raise OverflowError(f"a range has at most {MOST_RANGE:,} numbers")
    return found


def _environment(html: bool) -> _Environment:
    made = _Environment(undefined=StrictUndefined, autoescape=html, finalize=finalize)
    made.globals = {"range": _range}
    known = {name: made.filters[name] for name in _FILTERS} | {"iso": iso_time, "format": _format}
    made.filters = {name: limited(name, one) for name, one in known.items()} | FILTERS
    return made


_ENVIRONMENTS = {html: _environment(html) for html in (False, True)}


@cache
def _compiled(source: str, html: bool) -> Template:
    environment = _ENVIRONMENTS[html]
    return environment.from_string(with_limits(environment.parse(source)))


def render(
    source: str, notification: Notification, *, html: bool = False, escape: Callable[[str], str] = str
) -> str:
    """The text of a checked template for an event. `escape` changes the texts of the event, except its link.

    Raises RenderError.
    """
    try:
        return _render(_compiled(source, html), _values(notification, escape))
    except RenderError:
        raise
    except Exception as error:
        # Messages of Python may have a value. Those of Jinja2 have names, which a value may be, too.
        named = re.findall(r"'([^']*)'", str(error))
        plain = isinstance(error, TemplateError) and all(n in source or n.endswith(" object") for n in named)
        detail = f": {error}" if plain else ""
        raise RenderError(f"{type(error).__name__}{detail}") from None


def _render(template: Template, values: Mapping[str, Any]) -> str:
    limits, length, parts = Limits(), 0, []
    for part in template.generate({**values, LIMITS: limits}):
        length += len(part)
        parts.append(part)
        if length > MOST_OUTPUT:
            raise RenderError(f"it writes more than {MOST_OUTPUT:,} characters")
        limits.check_time()
    text = "".join(parts)
    text.encode()  # halves of surrogate pairs can't be sent
    return text


def _values(notification: Notification, escape: Callable[[str], str] = str) -> dict[str, Any]:
    """The variables of a template."""
    episode = notification.episode

    def short(value: Any) -> Any:
        if isinstance(value, (bool, int, float, type(None))):
            return value
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        return escape(text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}…")

    return {
        "alert": episode["alert"],
        "key": [short(value) for value in episode["key"]],
        "severity": short(episode["severity"] or ""),
        "labels": {name: short(value) for name, value in episode["labels"].items()},
        "event": episode["event"],
        "episode": episode["episode"],
        "id": event_id(episode),
        "start": iso_time(episode["start"]),
        "end": iso_time(episode["end"]),
        "seconds": (episode["end"] - episode["start"]) / 1e6,
        "alarms": episode["alarms"],
        "row": {name: short(value) for name, value in episode["row"].items()},
        "columns": {name: short(value) for name, value in notification.columns.items()},
        "link": notification.link,
    }


# ---- the check


class _Value(float):
    """A sample of a value whose type isn't known: a number that can also be used as a text."""

    def __len__(self) -> int:
        return len(str(self))

    def __getitem__(self, at: Any) -> str:
        return str(self)[at]

    def __iter__(self) -> Iterator[str]:
        return iter(str(self))

    def __contains__(self, part: object) -> bool:
        return str(part) in str(self)

    def __lt__(self, other: object) -> bool:
        return super().__lt__(other) if isinstance(other, (int, float)) else False

    def __gt__(self, other: object) -> bool:
        return super().__gt__(other) if isinstance(other, (int, float)) else False

    __le__, __ge__ = __lt__, __gt__


class _AnyName(dict[str, Any]):
    """A sample of a row or of labels: it has a value of every name."""

    def __missing__(self, _: str) -> _Value:
        return _Value(41.5)


# Alerts have at most as many key columns as this, or their templates use `key|join`.
_SAMPLE_KEY = [_Value(3.0)] * 32


def _sample(event: str) -> dict[str, Any]:
    facts = {
        "alert": "hot", "key": [], "severity": "page", "labels": {}, "event": event, "episode": "5f0c",
        "start": 1_700_000_000_000_000, "end": 1_700_000_060_000_000, "alarms": 3, "row": {},
    }  # fmt: skip
    return {
        **_values(Notification(facts, link="https://tamis.example/#/alerts/hot")),
        "columns": _AnyName(station=_Value(3.0)),
        "key": _SAMPLE_KEY,
        "row": _AnyName(temp=_Value(41.5)),
        "labels": _AnyName(team="ops"),
    }


def check(source: str, *, html: bool = False) -> str:
    """The template, if it can be used. Raises ValueError with the line of a mistake, and what to do."""
    try:
        tree = _ENVIRONMENTS[html].parse(source)
        _check_nodes(tree, 0)
        template = _compiled(source, html)
    except TemplateError as error:
        raise ValueError(f"the template, line {getattr(error, 'lineno', 1)}: {error}") from None
    except RecursionError:
        raise ValueError("the template has too many parts one within another") from None
    for event in ("opened", "closed"):
        try:
            _render(template, _sample(event))
        except Exception as error:
            # A filter may fail with any error, such as AssertionError of `truncate(2)`.
            raise ValueError(f"the template can't be rendered for a sample: {error}") from None
    return source


def _check_nodes(node: nodes.Node, loops: int, bound: frozenset[str] = _NAMES) -> None:
    """Raises ValueError for a node that is not available. `bound`: the variables that there are."""
    place = f"the template, line {node.lineno}"
    if not isinstance(node, _NODES):
        raise ValueError(f"{place}: {type(node).__name__.lower()} is not available in notifications")
    if isinstance(node, nodes.For):
        loops += 1
        if loops > MOST_LOOPS or node.recursive:
            raise ValueError(f"{place}: more than {MOST_LOOPS} loops one within another, or a recursive one")
        targets = {node.target, *node.target.find_all(nodes.Name)}
        bound |= {target.name for target in targets if isinstance(target, nodes.Name)} | {"loop"}
    if isinstance(node, nodes.Name) and node.name not in bound:
        raise ValueError(f"{place}: there is no {node.name!r}; there are: {', '.join(sorted(_NAMES))}")
    if isinstance(node, nodes.Filter) and node.name not in (known := {*_FILTERS, "iso"}):
        raise ValueError(f"{place}: there is no filter {node.name!r}; there are: {', '.join(sorted(known))}")
    if isinstance(node, nodes.Call):
        called = node.node
        plain = isinstance(called, nodes.Name) and called.name == "range"
        items = isinstance(called, nodes.Getattr) and called.attr == "items" and not node.args
        if not (plain or items):
            raise ValueError(f"{place}: only range() and items() can be called; use a filter, such as |upper")
    for child in node.iter_child_nodes():
        _check_nodes(child, loops, bound)


def _check_html(source: str) -> str:
    return check(source, html=True)


_Source = Field(min_length=1, max_length=MOST_SOURCE)
TemplateText = Annotated[str, _Source, AfterValidator(check)]
HtmlTemplate = Annotated[str, _Source, AfterValidator(_check_html)]
