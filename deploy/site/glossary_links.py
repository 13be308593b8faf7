"""Links to the glossary from the first use of each term on a page of the site."""

from __future__ import annotations

import re
from functools import lru_cache

# Words that are terms in one place and ordinary English in most others. They aren't linked.
AMBIGUOUS = frozenset(
    """
    alert box bucket condition core definition entry extreme filter gap held hot late limited pane part
    pattern place plan progress repair reserve room series shape sides source stream topic tuple value
    """.split()  # noqa: SIM905
)

_ROW = re.compile(r"^\| (\*\*.*?) \|", re.M)
_TERM = re.compile(r"\*\*([^*]+)\*\*(?: \([^)]*\))?|\*([^*]+)\*")
# What must stay as it is: code, links and images, addresses, headings and HTML.
_KEPT = re.compile(r"`[^`]*`|!?\[(?:[^\[\]]|\[[^\[\]]*\])*\]\([^)]*\)|https?://\S+|^#.*$|<[^>]+>", re.M)


def anchor(term: str) -> str:
    """The name by which links refer to a term.

    >>> anchor("Proven bound")
    'term-proven-bound'
    """
    return "term-" + re.sub(r"[^a-z0-9]+", "-", term.lower()).strip("-")


def terms(glossary: str, leave_out: frozenset[str] = AMBIGUOUS) -> dict[str, str]:
    """Each term of the glossary but those to leave out, in lower case, with the anchor of its row.

    >>> terms("| **standing query**, *continuous query* | x |\\n| **part** | y |")
    {'standing query': 'term-standing-query', 'continuous query': 'term-standing-query'}
    """
    found: dict[str, str] = {}
    for row in _ROW.findall(glossary):
        names = [(first or second).partition(" (")[0].lower() for first, second in _TERM.findall(row)]
        found |= {name: anchor(names[0]) for name in names if name not in leave_out}
    return found


def with_anchors(glossary: str) -> str:
    """The glossary with an anchor in each row.

    >>> with_anchors("| **alarm** | One row. |")
    '| <a id="term-alarm"></a>**alarm** | One row. |'
    """

    def change(match: re.Match[str]) -> str:
        name = _TERM.match(match[1])
        assert name is not None
        return f'| <a id="{anchor(name[1].partition(" (")[0])}"></a>{match[1]} |'

    return _ROW.sub(change, glossary)


@lru_cache(maxsize=1000)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """A pattern of all of the names, and of what must stay as it is."""
    either = "|".join(r"\s+".join(map(re.escape, name.split())) for name in names)
    return re.compile(rf"{_KEPT.pattern}|\b(?<!-)(?P<term>{either})s?\b(?!-)", re.M | re.I)


def link_first_uses(text: str, names: dict[str, str], glossary: str) -> str:
    """The text of a page with a link from the first use of each term, in its singular or plural form.

    Args:
        text: the page, without its code blocks.
        names: the terms with their anchors. A term that is linked here is removed from them.
        glossary: the address of the glossary from the page.

    >>> link_first_uses("Alarms and `alarm`. An alarm.", {"alarm": "term-alarm"}, "glossary.md")
    '[Alarms](glossary.md#term-alarm) and `alarm`. An alarm.'
    """
    if not names:
        return text

    def change(match: re.Match[str]) -> str:
        term = " ".join((match["term"] or "").lower().split())
        if term not in names:
            return match[0]
        place = names[term]
        for name in [name for name, other in names.items() if other == place]:
            del names[name]
        return f"[{match[0]}]({glossary}#{place})"

    return _any_of(tuple(sorted(names, key=len, reverse=True))).sub(change, text)
