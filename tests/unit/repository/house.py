"""Size of the code: lines, statements, tokens, docstrings, and what each service loads.

`python -m tests.unit.repository.house [COMMIT]` prints the figures of this tree beside those of a commit.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

REPOSITORY = Path(__file__).resolve().parents[3]
# Where each top-level package of the product is.
ROOTS = {
    "tamis": "shared",
    "tamis_edge": "services/edge",
    "tamis_registry": "services/registry",
    "tamis_joiner": "services/joiner",
    "tamis_alerts": "services/alerts",
}
# Libraries whose loading is reported, since they are large.
LARGE = ("sqlglot", "highspy", "flint", "duckdb")
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Module:
    """A file of the product."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tree = ast.parse(text)

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def docstrings(self) -> list[ast.Expr]:
        """The docstrings of the module, its classes and functions."""
        owners = (node for node in ast.walk(self.tree) if isinstance(node, _WITH_DOCSTRING))
        return [
            node.body[0]
            for node in owners
            if ast.get_docstring(node, clean=False) is not None and isinstance(node.body[0], ast.Expr)
        ]

    @property
    def statements(self) -> int:
        """The statements of the syntax tree without docstrings."""
        return sum(isinstance(node, ast.stmt) for node in ast.walk(self.tree)) - len(self.docstrings)

    @property
    def tokens(self) -> int:
        """The tokens without comments, layout and docstrings."""
        documentation = {line for doc in self.docstrings for line in range(doc.lineno, doc.end_lineno + 1)}  # type: ignore[operator]
        return sum(
            token.type not in _LAYOUT
            and not (token.type == tokenize.STRING and token.start[0] in documentation)
            for token in tokenize.generate_tokens(io.StringIO(self.text).readline)
        )

    @property
    def public_functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """The functions and methods whose names don't begin with an underscore."""
        return [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        ]

    def mentions(self) -> Iterator[str]:
        """The dotted names that may be loaded: by imports wherever they stand but for those for types alone,
        by `import_module`, and by child processes (`-m`).
        """
        for_types = {
            id(inner)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
            for inner in ast.walk(node)
        }
        for node in ast.walk(self.tree):
            if id(node) in for_types:
                continue
            if isinstance(node, ast.Import):
                yield from (name.name for name in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{name.name}" for name in node.names)
            elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
                yield from _texts(node.args)
            elif isinstance(node, ast.List):
                texts = _texts(node.elts)
                yield from texts[texts.index("-m") + 1 :][:1] if "-m" in texts else ()


def _texts(nodes: list[ast.expr]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


class House:
    """The product's code in a tree."""

    def __init__(self, tree: Path) -> None:
        self.modules: dict[str, Module] = {}
        for package, root in ROOTS.items():
            for file in sorted((tree / root / package).rglob("*.py")):
                name = ".".join(file.relative_to(tree / root).with_suffix("").parts)
                self.modules[name.removesuffix(".__init__")] = Module(file.read_text())
        self.line_length = tomllib.loads((tree / "pyproject.toml").read_text())["tool"]["ruff"]["line-length"]

    def closure(self, package: str) -> tuple[set[str], set[str]]:
        """The modules that all modules of a package load, themselves included, and the large libraries."""
        waiting = [name for name in self.modules if name == package or name.startswith(f"{package}.")]
        loaded: set[str] = set()
        libraries: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name in loaded:
                continue
            loaded.add(name)
            waiting += [parent for parent in [name.rpartition(".")[0]] if parent]
            for mention in self.modules[name].mentions():
                if mention in self.modules:
                    waiting.append(mention)
                libraries |= {mention.partition(".")[0]} & set(LARGE)
        return loaded, libraries

    def figures(self) -> Mapping[str, str]:
        """What the table shows, by the names of its lines."""
        modules = self.modules.values()
        functions = [function for module in modules for function in module.public_functions]
        documented = sum(ast.get_docstring(function) is not None for function in functions)
        figures = {
            "files": f"{len(self.modules):,}",
            "lines": f"{sum(module.lines for module in modules):,}",
            "statements": f"{sum(module.statements for module in modules):,}",
            "tokens": f"{sum(module.tokens for module in modules):,}",
            "longest line that the formatter allows": str(self.line_length),
            "public functions with a docstring": f"{documented / len(functions):.1%} of {len(functions):,}",
        }
        for package in ("tamis_edge", "tamis_joiner", "tamis_alerts", "tamis_registry"):
            loaded, libraries = self.closure(package)
            lines = sum(self.modules[name].lines for name in loaded)
            with_libraries = f", with {', '.join(sorted(libraries))}" if libraries else ""
            figures[f"{package} loads"] = f"{lines:,} lines in {len(loaded)} files{with_libraries}"
        return figures


def of_commit(commit: str) -> House:
    """The product's code in an earlier commit."""
    command = ["git", "archive", commit, "pyproject.toml", *sorted(set(ROOTS.values()))]
    packed = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True).stdout
    with TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        archive.extractall(folder, filter="data")
        return House(Path(folder))


def moved_lines(commit: str) -> int:
    """The lines of files that are in another folder than in the commit, as git finds them."""
    command = [
        "git",
        "diff",
        "--find-renames",
        "--diff-filter=R",
        "--name-status",
        commit,
        "--",
        *ROOTS.values(),
    ]
    told = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout
    pairs = (line.split("\t")[1:] for line in told.splitlines() if line.endswith(".py"))
    return sum(
        (REPOSITORY / after).read_text().count("\n")
        for before, after in pairs
        if Path(before).parent != Path(after).parent
    )


def main() -> None:
    now = House(REPOSITORY).figures()
    if len(sys.argv) == 1:
        print("\n".join(f"{name:<40} {figure}" for name, figure in now.items()))
        return
    before = of_commit(sys.argv[1]).figures()
    print(f"{'':<40} {sys.argv[1]:<60} now")
    print("\n".join(f"{name:<40} {before[name]:<60} {figure}" for name, figure in now.items()))
    print(f"{'lines of files in another folder':<40} {'':<60} {moved_lines(sys.argv[1]):,}")


if __name__ == "__main__":
    main()
