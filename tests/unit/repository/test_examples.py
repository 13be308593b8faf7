"""The examples of all pages: SQL is explained, Python runs, files are read, JSON is JSON, and commands exist.

Pages whose examples are also compared with their output have tests of their own: `test_readme`,
`test_tutorial`, `tests/unit/frames/test_page.py` and `tests/integration/spark/test_page.py`.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml
from click.testing import CliRunner
from tests.unit.repository.test_operate_pages import check, commands

from tamis.cli import main
from tamis.settings.token_file import read_tokens
from tamis_alerts.settings import load_config as load_alerts
from tamis_edge.settings import load_config as load_edge

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = [
    REPOSITORY / "README.md",
    *sorted((REPOSITORY / "services").glob("*/README.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]
# Tests of their own run these, since they need frames, a session of Spark, or a broker.
OTHER_PYTHON = {"docs/python.md", "docs/spark.md", "docs/subscribing.md"}
# Queries that a page shows because they are refused.
REFUSED = {"docs/explain.md": {"crossed"}}
# The files of the tables of pages.
TABLES = {
    "docs/sql.md": {"sites.csv": "station,region,target\nk1,north,20\n"},
    "docs/bounded.md": {"sites.csv": "id,name\n1,north\n"},
}


def name_of(page: Path) -> str:
    return str(page.relative_to(REPOSITORY))


def blocks(page: Path, language: str) -> list[str]:
    """The examples of a page in one language."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", page.read_text(), re.M | re.S)
    return [textwrap.dedent(code) for _, code in found]


def pages_with(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


@pytest.mark.parametrize("page", pages_with("sql"), ids=name_of)
def test_queries_are_accepted_unless_the_page_says_otherwise(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = name_of(page)
    for file, content in TABLES.get(name, {}).items():
        (tmp_path / file).write_text(content)
    monkeypatch.chdir(tmp_path)
    # The statements of a page build on each other.
    Path("page.sql").write_text("\n".join(blocks(page, "sql")))
    result = CliRunner().invoke(main, ["explain", "page.sql", "--json"])
    assert result.exit_code in (0, 1), result.output
    queries = orjson.loads(result.stdout)["queries"]
    refused = {query["name"] for query in queries if not query["accepted"]}
    assert refused == REFUSED.get(name, set())


@pytest.mark.parametrize(
    "page", [page for page in pages_with("python") if name_of(page) not in OTHER_PYTHON], ids=name_of
)
def test_python_runs_and_gives_the_values_of_its_comments(page: Path) -> None:
    names: dict[str, object] = {}
    compared = 0
    for code in blocks(page, "python"):
        lines = code.splitlines()
        for statement in ast.parse(code).body:
            if not isinstance(statement, ast.Expr):
                exec(compile(ast.Module([statement], []), name_of(page), "exec"), names)
                continue
            value = eval(compile(ast.Expression(statement.value), name_of(page), "eval"), names)
            # The value stands behind the expression or in the line below it.
            last = statement.end_lineno or 0
            shown = re.search(r"  # (.*)$", lines[last - 1]) or re.match(
                r"# (.*)$", "".join(lines[last : last + 1])
            )
            if shown is not None:
                assert value == ast.literal_eval(shown[1]), lines[last - 1]
                compared += 1
    assert compared > 0


def test_the_python_of_other_pages_is_tested_elsewhere() -> None:
    assert {name_of(page) for page in pages_with("python")} & OTHER_PYTHON == OTHER_PYTHON


def test_the_consumer_of_a_stream_imports_what_there_is() -> None:
    (code,) = blocks(REPOSITORY / "docs" / "subscribing.md", "python")
    imports = [one for one in ast.parse(code).body if isinstance(one, ast.ImportFrom)]
    exec(compile(ast.Module(list(imports), []), "subscribing.md", "exec"), {})
    assert len(imports) == 4


@pytest.mark.parametrize("page", pages_with("yaml"), ids=name_of)
def test_configurations_are_read(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for text in blocks(page, "yaml"):
        for variable in re.findall(r"\$\{(\w+)\}", text):
            monkeypatch.setenv(variable, "https://planted.example/")
        file = tmp_path / "file.yaml"
        file.write_text(completed(text, tmp_path))
        keys = yaml.safe_load(text).keys()
        if "tokens" in keys:
            assert read_tokens(file)
        elif {"sinks", "routes"} & keys:
            assert load_alerts(file).sinks
        else:
            assert load_edge(file).sources


def completed(text: str, folder: Path) -> str:
    """A configuration with the sinks that its routes name, if the page has them elsewhere."""
    content = yaml.safe_load(text)
    if "routes" in content and "sinks" not in content:
        named = sorted({name for route in content["routes"] for name in route["sinks"]})
        content["sinks"] = [{"kind": "webhook", "name": name, "url": "https://a.example/"} for name in named]
        return yaml.safe_dump(content)
    return text


@pytest.mark.parametrize("page", pages_with("json"), ids=name_of)
def test_documents_are_json(page: Path) -> None:
    for text in blocks(page, "json"):
        assert list(documents(text))


def documents(text: str) -> Iterator[object]:
    """The documents of an example: one in each line, or one over several lines."""
    begun = ""
    for line in text.splitlines():
        begun += line
        try:
            yield orjson.loads(begun)
        except orjson.JSONDecodeError:
            continue
        begun = ""
    assert not begun, begun


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_exist(page: Path) -> None:
    calls = [*blocks(page, "sh"), *re.findall(r"`(tamis [a-z]+ [^`]*)`", page.read_text())]
    for call in calls:
        for words in commands(call):
            check(words)
