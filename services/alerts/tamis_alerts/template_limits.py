"""Limits of one rendering of a template: the time that it takes, and the size of each value that it makes.

Jinja2's sandbox guards what a template reads, and not how much it makes: `range(1000)|join(text)|replace("x",
text)` would be a text of gigabytes. Filters, concatenations and loops check their values here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from jinja2 import nodes, pass_context
from jinja2.runtime import Context

MOST_OUTPUT = 100_000  # characters of a text, with one for each element of a list
MOST_SECONDS = 1.0
MOST_INDENT = 8

# The variable of a rendering that has its limits. Templates can't name it.
LIMITS = "_limits"


class RenderError(Exception):
    """A template can't be rendered for an event. The message has no value of the event."""


class Limits:
    """The limits of one rendering, which begins now."""

    def __init__(self) -> None:
        self._until = time.monotonic() + MOST_SECONDS

    def check_time(self) -> None:
        """Raises RenderError if the rendering takes too long."""
        if time.monotonic() > self._until:
            raise RenderError(f"it takes longer than {MOST_SECONDS:g} s")

    def check(self, *values: object) -> None:
        """Raises RenderError if the rendering takes too long, or if a text of these values would be too
        long.
        """
        self.check_time()
        check_size(*values)


def check_size(*values: object) -> None:
    """Raises RenderError if a text of these values would be too long."""
    size, waiting = 0, list(values)
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            size += len(one)
        elif isinstance(one, Mapping):
            waiting += [*one, *one.values()]
            size += len(one)
        elif isinstance(one, (list, tuple, range, set)):
            size += len(one)
            if size <= MOST_OUTPUT:
                waiting += one
        if size > MOST_OUTPUT:
            raise RenderError(f"it makes a text of more than {MOST_OUTPUT:,} characters")


def limited(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """A filter that checks its arguments and its result."""
    kind = getattr(function, "jinja_pass_arg", None)

    @pass_context
    def checked(context: Context, *values: Any, **named: Any) -> Any:
        limits = _limits(context)
        arguments = [_finite(value) for value in values]
        limits.check(*arguments, *named.values())
        if name in _SIZES:
            _SIZES[name](*arguments, **named)
        if kind is not None:
            first = {"context": context, "eval_context": context.eval_ctx}.get(kind.name, context.environment)
            arguments.insert(0, first)
        found = _finite(function(*arguments, **named))
        limits.check(found)
        return found

    return checked


def _finite(value: Any) -> Any:
    """The values of an iterator as a list, which can be checked."""
    return list(islice(value, MOST_OUTPUT + 1)) if isinstance(value, Iterator) else value


def _check_join(values: Iterable[Any], separator: str = "", *_: Any, **named: Any) -> None:
    """The length of a text is known before it is made."""
    count = sum(1 for _ in values)
    if count * len(str(named.get("d", separator))) > MOST_OUTPUT:
        raise RenderError(f"it makes a text of more than {MOST_OUTPUT:,} characters")


def _check_replace(text: Any, old: str, new: str, *_: Any, **named: Any) -> None:
    text = str(text)
    if len(text) + (text.count(old) if old else len(text) + 1) * len(new) > MOST_OUTPUT:
        raise RenderError(f"it makes a text of more than {MOST_OUTPUT:,} characters")


def _check_indent(_: Any, indent: int | None = None) -> None:
    if indent is not None and not 0 <= indent <= MOST_INDENT:
        raise RenderError(f"an indent has at most {MOST_INDENT} spaces")


_SIZES: dict[str, Callable[..., None]] = {
    "join": _check_join,
    "replace": _check_replace,
    "tojson": _check_indent,
}


@pass_context
def _sized(context: Context, value: Any) -> Any:
    found = _finite(value)
    _limits(context).check(found)
    return found


@pass_context
def _steps(context: Context, values: Iterable[Any]) -> Iterator[Any]:
    limits = _limits(context)
    for value in values:
        limits.check_time()
        yield value


def _limits(context: Context) -> Limits:
    found = context[LIMITS]
    assert isinstance(found, Limits)
    return found


# Filters that templates can't name: of the parts of a concatenation, of printed values, and of loops.
finalize = _sized
FILTERS = {"_sized": _sized, "_steps": _steps}
MOST_PARTS = 100  # of all concatenations of a template


def with_limits(tree: nodes.Template) -> nodes.Template:
    """A checked template whose loops and concatenations keep the limits. Raises ValueError if it has too many
    concatenations.
    """
    for loop in tree.find_all(nodes.For):
        loop.iter = _filter("_steps", loop.iter)
    parts = 0
    for concat in list(tree.find_all(nodes.Concat)):
        parts += len(concat.nodes)
        if parts > MOST_PARTS:
            raise ValueError(
                f"the template, line {concat.lineno}: more than {MOST_PARTS} texts are joined by ~"
            )
        concat.nodes = [_filter("_sized", one) for one in concat.nodes]
    return tree


def _filter(name: str, value: nodes.Node) -> nodes.Filter:
    assert isinstance(value, nodes.Expr)
    assert value.environment is not None
    made = nodes.Filter(value, name, [], [], None, None, lineno=value.lineno)
    made.set_environment(value.environment)
    return made
