"""Python functions, which Tamis can call but not analyse: code that an operator installs beside a service.

An expression contains the name of the function and its declared shapes, never code. The process that calls
it looks for the name in the modules of the setting TAMIS_FUNCTIONS.

Tamis trusts that a function keeps this contract. It takes NumPy arrays of float64, one for each parameter,
of the same length and without NULLs, and returns an array of that length. Each row is computed separately,
and equal arguments give equal results. A result that isn't finite, or larger than 1e100, is NULL. If a
shape is declared, no result is NULL for any arguments within their domains.
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
# Declared shapes of a function in one parameter, for fixed other arguments: increasing, decreasing, one of
# the two (the other arguments decide), quasiconvex, or nothing declared.
INCREASING, DECREASING, MONOTONE, QUASICONVEX, UNKNOWN = SHAPES = "+-mq?"
MOST = 1e100  # the largest size of a result; a larger one is NULL
CACHED_RESULTS = 200_000  # of one function; some 20 MB

Array: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[..., Any]


class FunctionError(TamisError):
    """A function that isn't installed in this process, or broke its contract."""


def opaque(name: str, shapes: str, arguments: tuple[Expr, ...]) -> Call:
    """A call; `shapes` has a letter of `SHAPES` for each argument."""
    head = (Literal(name, Type.VARCHAR), Literal(shapes, Type.VARCHAR))
    return Call(OPAQUE, (*head, *arguments), Type.DOUBLE)


def name_of(expr: Call) -> str:
    """The name of the called function."""
    (head, *_) = expr.args
    assert isinstance(head, Literal)
    return str(head.value)


def name_in_duckdb(expr: Call) -> str:
    """The name in DuckDB of the called function, which the session must have registered."""
    return f"tamis_{name_of(expr)}"


def shapes_of(expr: Call) -> str:
    """The declared shapes of a call: a letter of `SHAPES` for each argument."""
    shapes = expr.args[1]
    assert isinstance(shapes, Literal)
    return str(shapes.value)


def calls(*exprs: Expr | None) -> Iterator[Call]:
    """Every call of a Python function inside the expressions."""
    for expr in exprs:
        if isinstance(expr, Call):
            if expr.op == OPAQUE:
                yield expr
            yield from calls(*expr.args)


def missing(*exprs: Expr | None) -> tuple[str, ...]:
    """The names of the functions in the expressions that aren't installed in this process."""
    return tuple(sorted(name for name in {name_of(c) for c in calls(*exprs)} if not _is_installed(name)))


def _is_installed(name: str) -> bool:
    try:
        return _found(name) is not None
    except FunctionError:
        return False


def installed(name: str) -> Function:
    """The function of a name. Raises FunctionError if it isn't installed."""
    function = _found(name)
    if function is None:
        hint = f"set {SETTING} to the module that has it, in the environment of this process"
        raise FunctionError(f"the function '{name}' isn't installed here", hint=hint)
    return function


@lru_cache(maxsize=1_000)
def _found(name: str) -> Function | None:
    for module in os.environ.get(SETTING, "").replace(",", " ").split():
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            hint = f"list importable modules in {SETTING}, separated by commas"
            raise FunctionError(f"the module '{module}' can't be imported: {error}", hint=hint) from error
        function = getattr(loaded, name, None)
        # SQL must not call what a module only imports for its own use.
        defined_here = getattr(function, "__module__", None) == module and not name.startswith("_")
        if callable(function) and (name in getattr(loaded, "__all__", ()) or defined_here):
            return function  # type: ignore[no-any-return]
    return None


_results: dict[str, OrderedDict[tuple[float, ...], float]] = {}
_lock = Lock()  # an edge's shards run in threads


def clear_caches() -> None:
    """Forget the functions and their results, so that both are looked up anew."""
    with _lock:
        _results.clear()
    _found.cache_clear()


def results(name: str, arguments: list[Array]) -> Array:
    """The results of a function for each row of `arguments`, all of one length. It is called only for
    arguments whose results aren't cached, since one tuple takes part in many combinations.

    Raises FunctionError if it isn't installed, raises an exception, or returns no array of that length.
    """
    function = installed(name)
    rows = np.stack(arguments, axis=1) + 0.0  # -0.0 and 0.0 are one value
    distinct, which = np.unique(rows, axis=0, return_inverse=True)
    keys = [tuple(row) for row in distinct.tolist()]
    with _lock:
        cached = _results.setdefault(name, OrderedDict())
        unseen = [i for i, key in enumerate(keys) if key not in cached]
        if unseen:
            fresh = _called(name, function, [distinct[unseen, i] for i in range(distinct.shape[1])])
            cached.update(zip((keys[i] for i in unseen), fresh.tolist(), strict=True))
        out = np.array([cached[key] for key in keys], np.float64)
        while len(cached) > CACHED_RESULTS:
            cached.popitem(last=False)
    return out[which.reshape(-1)]


def _called(name: str, function: Function, arguments: list[Array]) -> Array:
    try:
        with np.errstate(all="ignore"):
            out = np.array(function(*arguments), np.float64)
    except Exception as error:
        what = f"the function '{name}' failed: {type(error).__name__}: {error}"
        raise FunctionError(what, hint="it must accept all values in the domains of its arguments") from error
    if out.shape != arguments[0].shape:
        what = f"the function '{name}' returned an array of shape {out.shape} for {len(arguments[0])} rows"
        raise FunctionError(
            what, hint="it must take an array for each parameter, and return one of the same length"
        )
    out[~(np.abs(out) <= MOST)] = np.nan
    return out
