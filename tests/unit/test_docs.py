"""The pages on topics and metrics say what the code says; every link within the docs leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tamis.messaging.topics import SPECS
from tamis.telemetry.catalogue import BY_NAME, CATALOGUE

REPOSITORY = Path(__file__).resolve().parents[2]


def rows(page: str) -> list[str]:
    """The body rows of the page's one table."""
    lines = [line for line in (REPOSITORY / "docs" / page).read_text().splitlines() if line.startswith("|")]
    return lines[2:]


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
    linked = re.findall(r"\]\(([^)#\s]+\.md)", (docs / "index.md").read_text())
    there = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} - {"index.md"}
    assert sorted(linked) == sorted(there)


@pytest.mark.parametrize(
    "page", [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))], ids=str
)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_alert_rules_are_of_metrics_that_there_are() -> None:
    """A rule compares families by a label that both have."""
    page = (REPOSITORY / "docs" / "metrics.md").read_text()
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    assert {rule["alert"] for rule in rules} >= {"TamisBoundPassed", "TamisUnproven"}
    for rule in rules:
        named = re.findall(r"tamis_\w+", rule["expr"])
        assert named
        for label in re.findall(r"on \((\w+)\)", rule["expr"]):
            assert all(label in BY_NAME[name].labels for name in named), rule["expr"]
        assert all(name in BY_NAME for name in named)
