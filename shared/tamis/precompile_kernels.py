"""Compile all kernels ahead of time, for images: `python -m tamis.precompile_kernels DIRECTORY`.

The directory gets a module of Python with the kernels in machine code, and a table of the types for which
they were compiled. `tamis.kernels` loads it where the variable TAMIS_KERNELS names the directory. The code
is made by numba's pycc from the same functions with the same options, so that results are equal bit by bit.
It needs a C compiler.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

# An image is not run on the machine that builds it. NumPy needs the same level of x86; on others, LLVM's
# generic processor is meant by an empty name.
CPU = {"x86_64": "x86-64-v2"}.get(platform.machine(), "")

Kernels = dict[tuple[Any, tuple[Any, ...]], Any]
"""The result's type by kernel (numba's dispatcher) and types of the arguments."""


def precompile(directory: Path, run: Callable[[], None]) -> dict[str, list[dict[str, Any]]]:
    """Compile the kernels that `run` calls; returns the table of their types."""
    from numba.core.typing.templates import signature
    from numba.pycc.cc import CC

    from tamis.kernels import MODULE, TABLE

    directory.mkdir(parents=True, exist_ok=True)
    module = CC(MODULE, source_module="tamis")  # type: ignore[no-untyped-call]
    module.output_dir, module.target_cpu = str(directory), CPU
    table: dict[str, list[dict[str, Any]]] = {}
    kernels = called(run)
    for number, ((kernel, types), result) in enumerate(sorted(kernels.items(), key=_name)):
        symbol = f"kernel_{number}"
        module.export(symbol, signature(result, *types))(kernel.py_func)  # type: ignore[no-untyped-call]
        name = f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}"
        table.setdefault(name, []).append({"symbol": symbol, "parameters": [_parameter(t) for t in types]})
    with _own_options({kernel.py_func: kernel for kernel, _ in kernels}):
        module.compile()
    (directory / TABLE).write_bytes(orjson.dumps(table, option=orjson.OPT_INDENT_2))
    return table


def called(run: Callable[[], None]) -> Kernels:
    """The kernels that Python calls while `run` runs, with each combination of types."""
    from numba.core.dispatcher import Dispatcher

    found: Kernels = {}
    compile_for = Dispatcher._compile_for_args  # type: ignore[attr-defined]

    # The dispatcher calls this at the first call with a combination of types, never for a call from a kernel.
    def recording(self: Any, *arguments: Any, **named: Any) -> Any:
        result = compile_for(self, *arguments, **named)
        types = tuple(self.typeof_pyval(argument) for argument in arguments)
        if self.py_func.__module__.startswith("tamis."):
            found[self, types] = self.overloads[types].signature.return_type
        return result

    Dispatcher._compile_for_args = recording  # type: ignore[attr-defined]
    try:
        run()
    finally:
        Dispatcher._compile_for_args = compile_for  # type: ignore[attr-defined]
    return found


@contextmanager
def _own_options(kernels: dict[Any, Any]) -> Iterator[None]:
    """Let pycc compile each kernel with the options of its decorator; it has one set of options for all."""
    pycc: Any = import_module("numba.pycc.compiler")
    original = pycc.compile_extra

    def compile_extra(typing: Any, target: Any, function: Any, *rest: Any, **named: Any) -> Any:
        types, result, flags = rest
        flags = flags.copy()
        kernel = kernels[function]
        kernel.targetdescr.options.parse_as_flags(flags, dict(kernel.targetoptions))
        flags.no_compile = True
        flags.no_cpython_wrapper = False
        return original(typing, target, function, types, result, flags, **named)

    pycc.compile_extra = compile_extra
    try:
        yield
    finally:
        pycc.compile_extra = original


def _name(item: tuple[tuple[Any, tuple[Any, ...]], Any]) -> tuple[str, str, str]:
    (kernel, types), _ = item
    return kernel.py_func.__module__, kernel.py_func.__qualname__, str(types)


def _parameter(kind: Any) -> Any:
    """The type of a parameter in the form that `tamis.kernels.check` reads."""
    from numba.core import types
    from numba.np.numpy_support import as_dtype

    if isinstance(kind, types.BaseTuple):
        return [_parameter(element) for element in kind]  # type: ignore[attr-defined]
    if isinstance(kind, types.Array):
        if kind.layout != "C" or not kind.aligned:
            raise TypeError(f"a kernel is called with {kind}; make a contiguous copy of it first")
        return {"dtype": as_dtype(kind.dtype).name, "dimensions": kind.ndim}
    return str(kind)


def main() -> None:
    """Compile into the directory that the command line names."""
    (directory,) = sys.argv[1:]
    with TemporaryDirectory() as cache:
        # Kernels that other kernels call are compiled as usual: also for the processor above, and not taken
        # from a cache of this machine's own. Numba reads these when it is imported.
        os.environ |= {"NUMBA_CACHE_DIR": cache, "NUMBA_CPU_NAME": CPU or "generic", "NUMBA_CPU_FEATURES": ""}
        os.environ.pop("TAMIS_KERNELS", None)
        from tamis.compile_kernels import warm

        table = precompile(Path(directory), warm)
    print(f"{len(table)} kernels in {sum(map(len, table.values()))} versions")


if __name__ == "__main__":
    main()
