"""Compile all kernels ahead of time: `python -m tamis.precompile_kernels [DIRECTORY]`.

The directory gets a module of Python with the kernels in machine code, and a table of the types for which
they were compiled. `tamis.kernels` loads it where the variable TAMIS_KERNELS names the directory. The code
is made by numba's pycc from the same functions with the same options, so that results are equal bit by bit.
It needs a C compiler, and the headers of Python.

Images name the directory. The set-up names none: the kernels are then for edges of this installation, which
use them while their sources are unchanged (`tamis.kernel_directory`). Without a C compiler the set-up leaves
them out, and numba compiles kernels in edges too.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from tamis import kernel_directory

# An image is not run on the machine that builds it. NumPy needs the same level of x86; on others, LLVM's
# generic processor is meant by an empty name.
CPU = {"x86_64": "x86-64-v2"}.get(platform.machine(), "")

Kernels = dict[tuple[Any, tuple[Any, ...]], Any]
"""The result's type by kernel (numba's dispatcher) and types of the arguments."""


def precompile(directory: Path, run: Callable[[], None]) -> dict[str, list[dict[str, Any]]]:
    """Compile the kernels that `run` calls; returns the table of their types."""
    from numba.core.typing.templates import signature
    from numba.pycc.cc import CC

    directory.mkdir(parents=True, exist_ok=True)
    module = CC(kernel_directory.MODULE, source_module="tamis")  # type: ignore[no-untyped-call]
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
    (directory / kernel_directory.TABLE).write_bytes(orjson.dumps(table, option=orjson.OPT_INDENT_2))
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
    """Compile into the directory that the command line names, or for the edges of this installation."""
    if len(sys.argv) > 1:
        print(_compile_all(Path(sys.argv[1])))
        return
    directory = kernel_directory.default()
    if not _compiler_works():
        print("no C compiler, or no headers of Python: numba will compile the kernels of edges")
        return
    with TemporaryDirectory() as temporary:
        compiled = Path(temporary) / "kernels"
        print(_compile_all(compiled))
        kernel_directory.sign(compiled)
        # Edges never find a part of it.
        directory.parent.mkdir(parents=True, exist_ok=True)
        beside = directory.with_name(f"{directory.name}.{os.getpid()}")
        shutil.copytree(compiled, beside)
        shutil.rmtree(directory, ignore_errors=True)
        beside.rename(directory)


def _compile_all(directory: Path) -> str:
    """Compile the kernels that services call; returns their numbers as text."""
    with TemporaryDirectory() as cache:
        # Kernels that other kernels call are compiled as usual: also for the processor above, and not taken
        # from a cache of this machine's own. Numba reads these when it is imported.
        os.environ |= {"NUMBA_CACHE_DIR": cache, "NUMBA_CPU_NAME": CPU or "generic", "NUMBA_CPU_FEATURES": ""}
        os.environ.pop(kernel_directory.VARIABLE, None)
        from tamis.compile_kernels import warm

        table = precompile(directory, warm)
    return f"{len(table)} kernels in {sum(map(len, table.values()))} versions"


def _compiler_works() -> bool:
    """True if numba can make a module of Python here."""
    from numba.pycc.platform import external_compiler_works

    headers = Path(sysconfig.get_path("include")) / "Python.h"
    return headers.is_file() and bool(external_compiler_works())


if __name__ == "__main__":
    main()
