"""The decorator of compiled kernels: numba's `njit`, or kernels that were compiled ahead of time.

In development numba compiles a kernel at its first call and keeps the result in its cache. Images, and edges
where a C compiler was installed at the set-up, have the directory TAMIS_KERNELS instead, which
`tamis.precompile_kernels` makes: the same functions, compiled by numba for the types with which services call
them. Then numba is imported only for a call with other types, and the image of an edge does without numba:
LLVM has 170 MB on disk, and an import takes 50 MB of memory.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import cached_property, update_wrapper
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import orjson

from tamis.errors import UnavailableError
from tamis.kernel_directory import MODULE, TABLE, VARIABLE

Check = Callable[..., bool]

# The Python types that numba takes as one of its scalar types.
_SCALARS: dict[str, frozenset[type]] = {
    "bool": frozenset({bool, np.bool_}),
    "float64": frozenset({float, np.float64}),
    "int64": frozenset({int, np.int64}),
    "uint64": frozenset({np.uint64}),
}


class PrecompiledKernel:
    """A function with its versions that were compiled ahead of time, each for other types of arguments.

    A version is called only with exactly its types, as numba's dispatcher does it: compiled code does not
    check them. The machine code is the same that numba would make, and so are the results.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        versions: list[tuple[int, Check, Callable[..., Any]]],
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self._options = options
        self._versions = versions

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if named:
            arguments = inspect.signature(self.py_func).bind(*arguments, **named).args
        for count, fits, version in self._versions:
            if count == len(arguments) and fits(*arguments):
                return version(*arguments)
        return self._dispatcher(*arguments)

    @cached_property
    def _dispatcher(self) -> Any:
        """The function as numba compiles it when it is called."""
        try:
            from numba import njit
        except ImportError:
            self._refuse()
        # The directories of an image are read-only: numba could not write its cache.
        return njit(**{**self._options, "cache": False})(self.py_func)

    def _refuse(self) -> NoReturn:
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        raise UnavailableError(
            f"{name} was not compiled ahead of time for these arguments",
            where=os.environ[VARIABLE],
            hint="install numba, or add a call with arguments of these types to tamis.compile_kernels and "
            "build the image again",
        )

    @property
    def _numba_type_(self) -> Any:
        """The type by which numba knows the function inside a kernel that it compiles."""
        return self._dispatcher._numba_type_


def precompiled(directory: Path) -> Callable[..., Any]:
    """A decorator like `njit` that finds kernels in a directory which `tamis.precompile_kernels` made."""
    module = _load(directory)
    table: dict[str, list[dict[str, Any]]] = orjson.loads((directory / TABLE).read_bytes())

    def decorator(function: Callable[..., Any] | None = None, **options: Any) -> Any:
        if function is None:
            return lambda function: decorator(function, **options)
        versions = [
            (len(version["parameters"]), check(*version["parameters"]), getattr(module, version["symbol"]))
            for version in table.get(f"{function.__module__}.{function.__qualname__}", [])
        ]
        return PrecompiledKernel(function, options, versions)

    return decorator


def check(*parameters: Any) -> Check:
    """A function that says if arguments have the types of parameters, each in the form of the table: the name
    of a scalar, `{"dtype": …, "dimensions": …}` of an array in C's order, or a list of these for a tuple.

    >>> rows = check({"dtype": "int64", "dimensions": 1})
    >>> rows(np.arange(3)), rows(np.arange(6)[::2]), rows(np.zeros(3)), rows([0])
    (True, False, False, False)
    >>> check(["bool", "int64"])((True, 1)), check("int64")(True), check("int64")(1.0)
    (True, False, False)
    """
    names = [f"a{number}" for number in range(len(parameters))]
    # One expression for all arguments: a function for each argument doubled the time of a call with 20 rows.
    conditions = " and ".join(map(_condition, names, parameters)) or "True"
    made: Check = eval(f"lambda {', '.join(names)}: {conditions}", dict(_NAMES))
    return made


_NAMES: dict[str, Any] = (
    {"ndarray": np.ndarray}
    | {np.dtype(kind).name: np.dtype(kind) for kind in "?bBhHiIlLfd"}
    | {f"_{name}": types for name, types in _SCALARS.items()}
)


def _condition(value: str, parameter: Any, depth: int = 0) -> str:
    """The condition on `value`, an expression of Python. Elements of tuples get names by their depth."""
    if isinstance(parameter, str):
        return f"type({value}) in _{parameter}"
    name = f"x{depth}"
    if isinstance(parameter, list):
        elements = [_condition(f"{name}[{i}]", part, depth + 1) for i, part in enumerate(parameter)]
        return " and ".join(
            [f"isinstance({name} := {value}, tuple)", f"len({name}) == {len(parameter)}", *elements]
        )
    dtype = np.dtype(parameter["dtype"]).name
    # `carray`: in C's order, aligned and writable. Kernels that write were compiled for such arrays.
    return (
        f"type({name} := {value}) is ndarray and {name}.ndim == {int(parameter['dimensions'])}"
        f" and ({name}.dtype is {dtype} or {name}.dtype == {dtype})"
        f" and ({name}.flags.carray or {name}.flags.c_contiguous and {name}.flags.aligned)"
    )


def _load(directory: Path) -> ModuleType:
    path = directory / f"{MODULE}{EXTENSION_SUFFIXES[0]}"
    if not path.is_file():
        raise UnavailableError(
            "no kernels for this Python and processor",
            where=str(path),
            hint=f"run `python -m tamis.precompile_kernels`, or unset {VARIABLE}",
        )
    loader = ExtensionFileLoader(MODULE, str(path))
    module = module_from_spec(ModuleSpec(MODULE, loader, origin=str(path)))
    loader.exec_module(module)
    return module


__all__ = ["PrecompiledKernel", "njit", "precompiled"]

if TYPE_CHECKING or VARIABLE not in os.environ:
    from numba import njit
else:
    njit = precompiled(Path(os.environ[VARIABLE]))
