"""Module map: docs/modules.md, one line a file, from the first lines of the docstrings.

`python -m tests.unit.repository.module_map` writes the page anew.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = REPOSITORY / "docs" / "modules.md"
CODE = ("shared", "services", "benchmarks")
HEAD = """\
# Modules

One line a file, by folder, from the first lines of the docstrings. [Architecture](architecture.md) says what
each room is for and what it may import. `python -m tests.unit.repository.module_map` writes this page; a
test compares it with the code.
"""


def modules(*rooms: str) -> Iterator[Path]:
    """The Python files under the rooms, a folder's `__init__` first."""
    for room in rooms:
        yield from sorted((REPOSITORY / room).rglob("*.py"), key=lambda file: (file.parent, file.name))


def first_line(module: Path) -> str:
    """The first line of the module's docstring; empty where it has none."""
    return (ast.get_docstring(ast.parse(module.read_text())) or "").partition("\n")[0]


def entry(module: Path) -> str:
    """The module's line on the page; a package's line stands under its folder's heading."""
    line = first_line(module)
    return line if module.name == "__init__.py" else f"- `{module.name}`: {line}"


def heading(folder: Path) -> str:
    """The heading of a folder; a folder within a package stands one level below the room."""
    nested = (folder.parent / "__init__.py").exists() and folder.parent.name != "tamis"
    return f"{'###' if nested else '##'} {folder.relative_to(REPOSITORY)}"


def page() -> str:
    parts = [HEAD]
    for folder, files in groupby(modules(*CODE), lambda file: file.parent):
        package, *others = sorted(files, key=lambda file: file.name != "__init__.py")
        parts.append(f"{heading(folder)}\n\n{entry(package)}\n")
        if others:
            parts.append("\n".join(map(entry, others)) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
