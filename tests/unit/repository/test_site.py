"""The site's hooks: links to files of the repository, navigation, and what pages load from elsewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest
from deploy.site import glossary_links, hooks, repository_links

REPOSITORY = Path(__file__).resolve().parents[3]
EDGE = "services/edge/README.md"


@pytest.mark.parametrize("module", [glossary_links, hooks, repository_links])
def test_examples_in_docstrings(module: object) -> None:
    failed, tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert tried > 0 and failed == 0


def test_the_site_copies_the_readme_of_every_service_and_the_files_that_it_explains() -> None:
    copied = repository_links.copies(REPOSITORY)
    for service in ("edge", "registry", "joiner", "alerts"):
        assert copied[f"services/{service}/README.md"] == f"repository/services/{service}.md"
    assert copied["services/edge/example.yaml"] == "repository/services/edge/example.yaml.md"
    assert copied["demo/first/alerts.sql"] == "repository/demo/first/alerts.sql.md"
    assert not any(path.endswith(".py") for path in copied)


@pytest.mark.parametrize(
    ("page", "link", "expected"),
    [
        (
            "docs/cli.md",
            "[E](../services/edge/README.md#sources)",
            "[E](repository/services/edge.md#sources)",
        ),
        ("docs/decisions/1.md", "[P](../protocol.md)", "[P](../protocol.md)"),
        (EDGE, "[P](../../docs/protocol.md#a)", "[P](../../protocol.md#a)"),
        (EDGE, "[`edge.py`](tamis_edge/edge.py)", "`services/edge/tamis_edge/edge.py`"),
        ("docs/benchmarks/a.md", "[results](../benchmarks)", "results (`docs/benchmarks`)"),
        ("docs/a.md", "![flow](flow.svg)", "![flow](flow.svg)"),
        ("docs/a.md", "[x](https://example.org/y)", "[x](https://example.org/y)"),
        ("docs/a.md", "```md\n[x](../tests/y.py)\n```", "```md\n[x](../tests/y.py)\n```"),
    ],
)
def test_links_are_rewritten(page: str, link: str, expected: str) -> None:
    copied = {EDGE: "repository/services/edge.md"}
    place = copied.get(page, page.removeprefix("docs/"))
    assert repository_links.rewrite(link, page, place, copied) == expected


def test_the_navigation_has_the_parts_and_every_page_of_the_index() -> None:
    index = (REPOSITORY / "docs" / "index.md").read_text()
    parts = hooks.navigation(index)
    assert [name for part in parts for name in part] == re.findall("^## (.*)$", index, re.M)
    listed = str(parts)
    for page in (REPOSITORY / "docs").rglob("*.md"):
        name = str(page.relative_to(REPOSITORY / "docs"))
        assert name == "index.md" or f"'{name}'" in listed


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<link rel="stylesheet" href="https://fonts.example/css">', ["https://fonts.example/css"]),
        ('<link rel="stylesheet" href="assets/main.css"><a href="https://a.example">a</a>', []),
        ('<link rel="canonical" href="https://docs.example/">', []),
        ('<img src="//pixel.example/1.png">', ["//pixel.example/1.png"]),
        ('<p style="background: url(https://a.example/b.png)">', ["https://a.example/b.png"]),
        ('<pre class="mermaid"><code>graph</code></pre>', ["the renderer of mermaid diagrams"]),
    ],
)
def test_what_a_page_loads_from_elsewhere_is_found(html: str, found: list[str]) -> None:
    assert hooks.loads_elsewhere(html) == found


def test_the_first_use_of_each_term_is_linked_to_its_row_of_the_glossary() -> None:
    docs = REPOSITORY / "docs"
    glossary = (docs / "glossary.md").read_text()
    rows = glossary_links.with_anchors(glossary)
    names = glossary_links.terms(glossary)
    assert all(rows.count(f'<a id="{place}"></a>') == 1 for place in names.values())
    assert {"watermark", "omission interval", "continuous query"} <= names.keys()
    assert not {"part", "value"} & names.keys()
    # No longer a term: the list of words that are not linked is up to date.
    everything = glossary_links.terms(glossary, leave_out=frozenset())
    assert everything.keys() >= glossary_links.AMBIGUOUS

    text = (
        "# Watermark\n\nAn `alarm` of the [alarm](a.md), alarm-like. Alarms wait for the omission\ninterval."
    )
    linked = glossary_links.link_first_uses(text, dict(names), "glossary.md")
    assert linked == (
        "# Watermark\n\nAn `alarm` of the [alarm](a.md), alarm-like. [Alarms](glossary.md#term-alarm) wait "
        "for the [omission\ninterval](glossary.md#term-omission-interval)."
    )
    pages = hooks.linking(hooks.navigation((docs / "index.md").read_text()))
    every = {f"repository/services/{name}.md" for name in ("edge", "registry", "joiner", "alerts")}
    every |= {page.name for page in docs.glob("*.md")}
    assert pages == every - {"index.md", "glossary.md", "modules.md", "bibliography.md"}
