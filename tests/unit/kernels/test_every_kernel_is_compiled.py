"""Every kernel that an edge calls is compiled by the set-up: in its image, another one is an error.

The kernels and their callers are found in the sources of all modules that an edge loads.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import orjson

PROGRAM = """
import sys
import orjson
import tamis_edge.service
modules = {name: module.__file__ for name, module in sys.modules.items() if name.startswith("tamis")}
from tamis.compile_kernels import warm
from tamis.precompile_kernels import called
names = {f"{kernel.py_func.__module__}.{kernel.py_func.__qualname__}" for kernel, _ in called(warm)}
print(orjson.dumps({"modules": modules, "called": sorted(names)}).decode())
"""
# A parameter of another function has the name of this kernel, which only kernels call.
NOT_CALLED = {"tamis.similarity.sliding_transform.coefficients"}


def _is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any("njit" in ast.unparse(d) for d in node.decorator_list)


def _loaded(node: ast.AST) -> Iterator[str]:
    """The names, also dotted ones, that Python loads in a module: kernels are left out."""
    for child in ast.iter_child_nodes(node):
        if not _is_kernel(child):
            if isinstance(child, ast.Name | ast.Attribute) and isinstance(child.ctx, ast.Load):
                yield ast.unparse(child)
            yield from _loaded(child)


def _meant(module: str, tree: ast.Module) -> dict[str, str]:
    """What the names of a module mean: its own functions, and what it imports from elsewhere."""
    own = {node.name: f"{module}.{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return own | {
        one.asname or one.name: f"{node.module}.{one.name}" for node in imports for one in node.names
    }


def test_every_kernel_that_an_edge_calls_is_compiled_by_the_set_up() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, check=True)
    found = orjson.loads(done.stdout.splitlines()[-1])
    trees = {name: ast.parse(Path(file).read_text()) for name, file in found["modules"].items() if file}
    kernels = {
        f"{module}.{node.name}"
        for module, tree in trees.items()
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and _is_kernel(node)
    }
    used = set()
    for module, tree in trees.items():
        meant = _meant(module, tree)
        for name in _loaded(tree):
            first, dot, rest = name.partition(".")
            used.add(meant.get(first, "") + dot + rest)
    assert len(kernels & used) > 30
    assert kernels & used - set(found["called"]) == NOT_CALLED
