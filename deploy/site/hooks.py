"""Hooks of MkDocs: navigation, pages outside docs/, links to the glossary, and no downloads by readers."""

from __future__ import annotations

import posixpath
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from deploy.site.glossary_links import link_first_uses, terms, with_anchors
from deploy.site.repository_links import (
    COPIED,
    COPIES,
    DOCS,
    address,
    copies,
    outside_fences,
    rewrite,
    target,
)
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

GLOSSARY = "glossary.md"
# Parts of the navigation whose pages have no links to the glossary: they are for readers who know the terms.
_WITHOUT_LINKS = {"Code", "Decisions", "Measurements"}
_ENTRY = re.compile(r"- \[(?P<title>.*?)\]\((?P<file>[^)]+)\)")
# Attributes from which a browser loads something when it shows a page. A link in `a` loads nothing by itself.
_LOADED = {
    "script": ("src",),
    "link": ("href",),
    "img": ("src", "srcset"),
    "iframe": ("src",),
    "source": ("src", "srcset"),
    "video": ("src",),
    "audio": ("src",),
    "object": ("data",),
}
# Links of these kinds only name an address.
_NAMING = {"canonical", "prev", "next", "edit", "alternate"}
_ELSEWHERE = re.compile(r"^(?:https?:)?//")
_CSS_ELSEWHERE = re.compile(r"""(?:url\(|@import)\s*["']?((?:https?:)?//[^"')\s]+)""")


def navigation(index: str) -> list[dict[str, Any]]:
    """The site's navigation from the lists of docs/index.md: its headings are parts, its entries pages.

    >>> navigation("# T\\n\\n## How-to\\n\\n- [Run](run.md): how\\n\\n### Old\\n\\n- [X](../a/README.md)")
    [{'How-to': [{'Run': 'run.md'}, {'Old': [{'X': 'repository/a.md'}]}]}]
    """
    parts: list[dict[str, Any]] = []
    place: list[dict[str, Any]] = parts
    for line in index.splitlines():
        if line.startswith("## "):
            place = []
            parts.append({line[3:]: place})
        elif line.startswith("### "):
            (part,) = parts[-1].values()
            place = []
            part.append({line[4:]: place})
        elif parts and (match := _ENTRY.match(line)):
            led = target(match["file"], f"{DOCS}/index.md")
            if led is None:
                continue
            file = led[0]
            inside = file.startswith(f"{DOCS}/")
            place.append({match["title"]: file.removeprefix(f"{DOCS}/") if inside else address(file)})
    return parts


def linking(parts: list[dict[str, Any]]) -> set[str]:
    """The pages that link the first use of each term to the glossary.

    >>> pages = [{"A": "a.md"}, {"Operate": [{"B": "b.md"}]}, {"Decisions": [{"C": "c.md"}]}]
    >>> sorted(linking([{"How-to": pages}]))
    ['a.md', 'b.md']
    """
    found: set[str] = set()
    for part in parts:
        for name, content in part.items():
            if isinstance(content, str):
                found.add(content)
            elif name not in _WITHOUT_LINKS:
                found |= linking(content)
    return found - {GLOSSARY}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Take the navigation from docs/index.md, which lists every page."""
    index = (Path(config.docs_dir) / "index.md").read_text()
    config.nav = [{"Home": "index.md"}, *navigation(index)]
    config.extra["linking"] = linking(config.nav[1:])
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and examples outside docs/ to which pages link."""
    repository = Path(config.config_file_path).parent
    config.extra[COPIES] = copies(repository)
    for path, place in config.extra[COPIES].items():
        text = (repository / path).read_text()
        language = COPIED[posixpath.splitext(path)[1]]
        if language:
            text = f"# {path}\n\n```{language}\n{text.rstrip()}\n```\n"
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite the links and lists of a page, and link its terms to the glossary."""
    copied: dict[str, str] = config.extra[COPIES]
    place = page.file.src_uri
    page.meta["search"] = {"boost": search_boost(place)}
    source = {there: path for path, there in copied.items()}.get(place, f"{DOCS}/{place}")
    text = rewrite(markdown, source, place, copied)
    glossary = (Path(config.docs_dir) / GLOSSARY).read_text()
    if place == GLOSSARY:
        return with_anchors(text)
    if place in config.extra["linking"]:
        names, there = terms(glossary), posixpath.relpath(GLOSSARY, posixpath.dirname(place))
        return outside_fences(text, lambda run: link_first_uses(run, names, there))
    return text


# Pages of the code and its measurements, for readers who change Tamis.
_OF_CODE = ("decisions/", "benchmarks/", "modules.md", "bibliography.md")
_README = re.compile(r"repository/services/[^/]+\.md")


def search_boost(place: str) -> float:
    """The weight of a page in the search of the site. A reader who searches for a message wants to know what
    to do, so the pages for that come first. Pages about the code, copied files and the glossary, which have
    all words of other pages, come last.

    >>> search_boost("troubleshoot.md"), search_boost("sql.md"), search_boost("decisions/0009-x.md")
    (2, 1, 0.1)
    >>> search_boost("repository/services/edge.md"), search_boost("repository/services/edge/example.yaml.md")
    (1, 0.1)
    """
    if place in ("runbook.md", "troubleshoot.md"):
        return 2
    if place == GLOSSARY:
        return 0.3
    copied = place.startswith("repository/") and not _README.fullmatch(place)
    return 0.1 if copied or place.startswith(_OF_CODE) else 1


class _Loads(HTMLParser):
    """The addresses elsewhere that a browser loads for a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "link" and _NAMING & set((values.get("rel") or "").split()):
            return
        for name in _LOADED.get(tag, ()):
            value = values.get(name) or ""
            if _ELSEWHERE.match(value):
                self.found.append(value)
        # Material loads a renderer of diagrams from elsewhere when a page has one.
        if "mermaid" in (values.get("class") or "").split():
            self.found.append("the renderer of mermaid diagrams")
        self.found += _CSS_ELSEWHERE.findall(values.get("style") or "")


def loads_elsewhere(html: str) -> list[str]:
    """The addresses on other servers from which a browser loads something to show a page.

    >>> loads_elsewhere('<a href="https://a.example"></a><script src="//b.example/x.js"></script>')
    ['//b.example/x.js']
    """
    parser = _Loads()
    parser.feed(html)
    return parser.found


def on_post_build(config: MkDocsConfig) -> None:
    """Fail if a page loads anything from another server."""
    site = Path(config.site_dir)
    found = {str(page.relative_to(site)): loads_elsewhere(page.read_text()) for page in site.rglob("*.html")}
    found |= {
        str(style.relative_to(site)): _CSS_ELSEWHERE.findall(style.read_text())
        for style in site.rglob("*.css")
    }
    faults = [f"{page}: {load}" for page, loads in sorted(found.items()) for load in loads]
    if faults:
        raise PluginError("pages must not load anything from other servers:\n" + "\n".join(faults))
