"""Links from pages to files of the repository, rewritten for the site.

On the code-hosting view a page may link to any file, such as `../services/edge/README.md` or a test. The site
has the pages under docs/, and copies of those files outside that a reader of the site needs: other pages, SQL
and YAML. A link to any other file becomes its path in the repository.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

DOCS = "docs"
# Where the site has its copies of files outside docs/.
COPIES = "repository"
# Other pages, and what users write themselves. A copy of any other file would only be source code.
COPIED = {".md": "", ".sql": "sql", ".yaml": "yaml", ".yml": "yaml"}

_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^\s*(```|~~~)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_NESTED_ITEM = re.compile(r" {2,3}(?:[-*]|\d+\.) ")


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text with each run of lines outside code blocks changed.

    >>> print(outside_fences("a\\n```\\na\\n```\\na", str.upper))
    A
    ```
    a
    ```
    A
    """
    done: list[str] = []
    run: list[str] = []
    fenced = False
    for line in text.split("\n"):
        if _FENCE.match(line):
            if run:
                done.append(change("\n".join(run)))
                run = []
            done.append(line)
            fenced = not fenced
        elif fenced:
            done.append(line)
        else:
            run.append(line)
    if run:
        done.append(change("\n".join(run)))
    return "\n".join(done)


def lists_for_python_markdown(text: str) -> str:
    """The text with a blank line before each list, and nested items indented by four.

    Python-Markdown needs both, the code-hosting view neither.

    >>> print(lists_for_python_markdown("Two:\\n- one\\n  more\\n- two\\n  - deep"))
    Two:
    <BLANKLINE>
    - one
      more
    - two
        - deep
    """
    done: list[str] = []
    for line in text.split("\n"):
        before = done[-1] if done else ""
        if _ITEM.match(line) and before.strip() and not _ITEM.match(before) and not before.startswith(" "):
            done.append("")
        done.append(f"    {line.lstrip()}" if _NESTED_ITEM.match(line) else line)
    return "\n".join(done)


def target(link: str, page: str) -> tuple[str, str] | None:
    """The file that a link leads to, as a path in the repository, and the heading; None for an address.

    >>> target("../services/edge/README.md#sources", "docs/cli.md")
    ('services/edge/README.md', '#sources')
    """
    if re.match(r"[a-z]+:", link) or link.startswith("#"):
        return None
    path, mark, heading = link.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)), mark + heading


def links(page: str, text: str) -> Iterator[str]:
    """The files that a page links to, as paths in the repository."""
    found: list[str] = []

    def collect(run: str) -> str:
        found.extend(match[2] for match in _LINK.finditer(run))
        return run

    outside_fences(text, collect)
    for link in found:
        led = target(link, page)
        if led is not None:
            yield led[0]


def copies(repository: Path) -> dict[str, str]:
    """Each file outside docs/ that the site copies, with its address there.

    These are the files of the kinds in `COPIED` that a page under docs/ links to, and those to which these
    link in turn.
    """
    found: dict[str, str] = {}
    waiting = [str(page.relative_to(repository)) for page in sorted((repository / DOCS).rglob("*.md"))]
    while waiting:
        page = waiting.pop()
        for file in links(page, (repository / page).read_text()):
            kind = posixpath.splitext(file)[1]
            outside = not file.startswith((f"{DOCS}/", ".."))
            if outside and kind in COPIED and file not in found and (repository / file).is_file():
                found[file] = address(file)
                if kind == ".md":
                    waiting.append(file)
    return found


def address(file: str) -> str:
    """The address of a copied file below the site.

    >>> address("services/edge/README.md"), address("services/edge/example.yaml")
    ('repository/services/edge.md', 'repository/services/edge/example.yaml.md')
    """
    if file.endswith("/README.md"):
        return f"{COPIES}/{posixpath.dirname(file)}.md"
    return f"{COPIES}/{file}" if file.endswith(".md") else f"{COPIES}/{file}.md"


def rewrite(text: str, page: str, place: str, copied: Mapping[str, str]) -> str:
    """The text of a page with links that work in the site.

    Args:
        text: the page.
        page: its path in the repository.
        place: its address below the site, as a Markdown file.
        copied: the addresses of files outside docs/ (`copies`).

    >>> rewrite("See [the test](../tests/t.py).", "docs/a.md", "a.md", {})
    'See the test (`tests/t.py`).'
    """

    def change(match: re.Match[str]) -> str:
        label, link = match[1], match[2]
        led = target(link, page)
        if led is None:
            return match[0]
        file, heading = led
        if file.startswith(f"{DOCS}/") and posixpath.splitext(file)[1]:
            there = file.removeprefix(f"{DOCS}/")
        elif file in copied:
            there = copied[file]
        else:
            bare = label.strip("`")
            return f"`{file}`" if file.endswith(bare) else f"{label} (`{file}`)"
        return f"[{label}]({posixpath.relpath(there, posixpath.dirname(place) or '.')}{heading})"

    return outside_fences(text, lambda run: _LINK.sub(change, lists_for_python_markdown(run)))
