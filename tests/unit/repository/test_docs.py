"""Pages agree with the code: topics, metrics, rooms, citations and links."""

from __future__ import annotations

import importlib
import pkgutil
import re
import tomllib
from pathlib import Path

import pytest

from tamis.messaging.topics import SPECS
from tamis.telemetry.metric_catalogue import CATALOGUE

REPOSITORY = Path(__file__).resolve().parents[3]
PAGES = [
    *(REPOSITORY / page for page in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
    *sorted((REPOSITORY / "services").glob("*/README.md")),
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]


def rows(page: str) -> list[str]:
    """The body rows of the page's one table."""
    lines = [line for line in (REPOSITORY / "docs" / page).read_text().splitlines() if line.startswith("|")]
    return lines[2:]


def headings(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_topics_page_is_the_topic_module() -> None:
    days = 24 * 3600 * 1000
    expected = []
    for spec in SPECS:
        partitions = str(spec.partitions) if spec.partitions else "fleet's"
        kept = "compacted" if spec.compacted else "deleted"
        after = f", {spec.retention_ms // days} d" if spec.retention_ms else ""
        expected.append(f"| `{spec.name}` | {spec.key} | {spec.value} | {partitions} | {kept}{after} |")
    assert rows("topics.md") == expected


def test_metrics_page_is_the_catalogue() -> None:
    expected = [
        f"| `{m.name}` | {m.kind} | {', '.join(m.labels)} | {m.service} | {m.help} |" for m in CATALOGUE
    ]
    assert rows("metrics.md") == expected


def test_the_index_leads_to_every_page() -> None:
    docs = REPOSITORY / "docs"
    linked = re.findall(r"^- \[.*?\]\(((?!\.\./)[^)#\s]+\.md)\)", (docs / "index.md").read_text(), re.M)
    there = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    assert sorted(linked) == sorted(there)


@pytest.mark.parametrize(
    "page",
    PAGES,
    ids=str,
)
def test_links_lead_somewhere(page: Path) -> None:
    for target, heading in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]+))?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            file = page.parent / target if target else page
            assert file.exists(), f"{page.name} links to {target}"
            assert not heading or heading in headings(file), f"{page.name} links to {target}#{heading}"


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_files_and_modules_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text()
    for path in re.findall(r"`((?:shared|services|tests|benchmarks|docs|demo|deploy)/[\w./-]+)`", text):
        assert (REPOSITORY / path).exists() or "/results" in path, f"{page.name} names {path}"
    for name in re.findall(r"`(tamis(?:_[a-z]+)?\.[\w.]+)(?:\(.*?\))?`", text):
        first, *rest = name.split(".")
        folder = (
            REPOSITORY
            / ("shared" if first == "tamis" else f"services/{first.removeprefix('tamis_')}")
            / first
        )
        known = {path.stem for path in folder.iterdir()}
        if rest[0] in known:  # topics have such names, too
            importlib.import_module(".".join((first, rest[0])))
            pkgutil.resolve_name(name)


def test_decisions_are_numbered_without_gaps_have_a_status_and_are_listed() -> None:
    index = (REPOSITORY / "docs" / "index.md").read_text()
    records = sorted((REPOSITORY / "docs" / "decisions").glob("*.md"))
    folded = {
        int(number) for number in re.findall(r"^Decision (\d+) is a part of decision \d+\.$", index, re.M)
    }
    numbers = [number for number in range(1, len(records) + len(folded) + 1) if number not in folded]
    for number, record in zip(numbers, records, strict=True):
        title, _, status = record.read_text().splitlines()[:3]
        assert record.name.startswith(f"{number:04}-") and title.startswith(f"# {number}. "), record.name
        assert status.startswith("Status: accepted"), record.name
        assert f"- [{title[2:]}](decisions/{record.name})\n" in index


def test_every_cited_text_is_in_the_bibliography() -> None:
    """Code and pages cite texts by keys such as cai-2021."""
    known = set(
        re.findall(r"^\| `([a-z]+-\d{4})`", (REPOSITORY / "docs" / "bibliography.md").read_text(), re.M)
    )
    rooms = ("shared", "services", "tests", "benchmarks", "docs")
    files = [f for room in rooms for kind in ("*.py", "*.md") for f in (REPOSITORY / room).rglob(kind)]
    own = [file for file in files if "node_modules" not in file.parts]
    cited = {key for file in own for key in re.findall(r"\b[a-z]+-(?:19|20)\d\d\b", file.read_text())}
    assert cited == known


def test_the_glossary_is_in_alphabetical_order() -> None:
    words = [re.findall(r"\*\*([^*]+)\*\*", row)[0] for row in rows("glossary.md")]
    assert words == sorted(words, key=str.lower)
    assert len(words) == len(set(words))


def rows_of_rooms() -> list[list[str]]:
    """The layers of import-linter's contract, from the top."""
    settings = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    # The first is of the rooms; others are of folders inside a room.
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return [layer.split(" | ") for layer in layers]


def test_the_table_of_rooms_is_the_contract_of_imports() -> None:
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    section = page.partition("## Rooms\n")[2].partition("\n## ")[0]
    first_cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert [re.findall(r"`([^`]+)`", cell) for cell in first_cells] == rows_of_rooms()


def test_every_room_is_in_the_contract_of_imports() -> None:
    """A module outside all layers could import and be imported by anything."""
    rooms = {
        f"tamis.{path.stem}"
        for path in (REPOSITORY / "shared" / "tamis").iterdir()
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and path.stem != "__init__"
    }
    assert rooms == {room for row in rows_of_rooms() for room in row if room.startswith("tamis.")}
