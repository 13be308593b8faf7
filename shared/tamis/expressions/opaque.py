"""Functions that Tamis can call and not look into: Python code that an operator installs beside a service.

An expression carries the function's name and what was declared of it, never code. The code is found by that
name in the modules that the setting TAMIS_FUNCTIONS lists, in the environment of the process that calls it.

The contract of such a function, which is trusted: NumPy arrays of float64 in, one for each parameter, all
of one length and without NULLs; an array of that length out. Equal arguments give equal results, each row
for itself. What isn't finite, or beyond 1e100 in size, is NULL; where a shape is declared, nothing is, for
all arguments within their domains.
"""

from __future__ import annotations

import importlib
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import lru_cache
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tamis.errors import TamisError
from tamis.expressions.nodes import OPAQUE, Call, Expr, Literal, Type

SETTING = "TAMIS_FUNCTIONS"
# What is declared of a parameter, with all other arguments fixed: it rises, it falls, one of the two as the
# others decide, quasiconvex, or nothing.
RISING, FALLING, MONOTONE, QUASICONVEX, UNKNOWN = SHAPES = "+-mq?"
MOST = 1e100  # the size of a result; one beyond is NULL
REMEMBERED = 200_000  # results of one function; some 20 MB

Array: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[..., Any]


class FunctionError(TamisError):
    """A function that isn't installed here, or did not keep its contract."""


def opaque(name: str, shapes: str, arguments: tuple[Expr, ...]) -> Call:
    """A call; `shapes` has one letter of `SHAPES` for each argument."""
    head = (Literal(name, Type.VARCHAR), Literal(shapes, Type.VARCHAR))
    return Call(OPAQUE, (*head, *arguments), Type.DOUBLE)


def name_of(expr: Call) -> str:
    """The name of the function that a call is of."""
    (head, *_) = expr.args
    assert isinstance(head, Literal)
    return str(head.value)


def shapes_of(expr: Call) -> str:
    """What is declared of each argument of a call."""
    shapes = expr.args[1]
    assert isinstance(shapes, Literal)
    return str(shapes.value)


def calls(*exprs: Expr | None) -> Iterator[Call]:
    """Every call of a function inside the expressions."""
    for expr in exprs:
        if isinstance(expr, Call):
            if expr.op == OPAQUE:
                yield expr
            yield from calls(*expr.args)


def missing(*exprs: Expr | None) -> tuple[str, ...]:
    """The names of the functions in these expressions that aren't installed in this process."""
    return tuple(sorted(name for name in {name_of(c) for c in calls(*exprs)} if not _has(name)))


def _has(name: str) -> bool:
    try:
        return _found(name) is not None
    except FunctionError:
        return False


def installed(name: str) -> Function:
    """The code. Raises FunctionError where it isn't installed, with what to do."""
    function = _found(name)
    if function is None:
        hint = f"set {SETTING} to the modules that have it, where this process starts"
        raise FunctionError(f"the function '{name}' isn't installed here", hint=hint)
    return function


@lru_cache(maxsize=1_000)
def _found(name: str) -> Function | None:
    for module in os.environ.get(SETTING, "").replace(",", " ").split():
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            hint = f"{SETTING} lists what can be imported, separated by commas"
            raise FunctionError(f"the module '{module}' can't be imported: {error}", hint=hint) from error
        function = getattr(loaded, name, None)
        # What a module imports for itself is not there to be called by whoever writes SQL.
        own = getattr(function, "__module__", None) == module and not name.startswith("_")
        if callable(function) and (name in getattr(loaded, "__all__", ()) or own):
            return function  # type: ignore[no-any-return]
    return None


_memory: dict[str, OrderedDict[tuple[float, ...], float]] = {}
_lock = Lock()  # an edge's shards run in threads


def forget() -> None:
    """Look for functions anew, and call them anew."""
    with _lock:
        _memory.clear()
    _found.cache_clear()


def results(name: str, arguments: list[Array]) -> Array:
    """The function of each row of `arguments`, all of one length. It is called once for arguments that it
    has not seen: the same tuple takes part in many combinations.

    Raises FunctionError where it isn't installed, raises an exception, or gives anything but as many numbers.
    """
    function = installed(name)
    rows = np.stack(arguments, axis=1) + 0.0  # -0.0 and 0.0 are one value
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    keys = [tuple(row) for row in distinct.tolist()]
    with _lock:
        memory = _memory.setdefault(name, OrderedDict())
        unseen = [i for i, key in enumerate(keys) if key not in memory]
        if unseen:
            fresh = _called(name, function, [distinct[unseen, i] for i in range(distinct.shape[1])])
            memory.update(zip((keys[i] for i in unseen), fresh.tolist(), strict=True))
        out = np.array([memory[key] for key in keys], np.float64)
        while len(memory) > REMEMBERED:
            memory.popitem(last=False)
    return out[which.reshape(-1)]


def _called(name: str, function: Function, arguments: list[Array]) -> Array:
    try:
        with np.errstate(all="ignore"):
            out = np.array(function(*arguments), np.float64)
    except Exception as error:
        what = f"the function '{name}' failed: {type(error).__name__}: {error}"
        raise FunctionError(what, hint="it must take every value of its arguments' domains") from error
    if out.shape != arguments[0].shape:
        what = f"the function '{name}' gave an array of shape {out.shape} for {len(arguments[0])} rows"
        raise FunctionError(
            what, hint="it takes arrays, one for each parameter, and gives one of their length"
        )
    out[~(np.abs(out) <= MOST)] = np.nan
    return out
