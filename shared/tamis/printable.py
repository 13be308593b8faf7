r"""Text from outside as a terminal may show it: none of its characters steers the terminal.

Keys, names, values and messages come from sensors, files and other users. A terminal obeys escape sequences
in them: they set its title, write to its clipboard, or overwrite what stands above. Other characters reorder
what stands beside them, or begin a line that looks like one of Tamis. The same holds for mail and chat. Such
a character is shown as Python writes it, such as `\x1b`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from unicodedata import category

# Controls, marks of format and of direction, separators of lines and paragraphs, halves of surrogate pairs.
# Two marks of format are part of usual writing: they join letters and emojis, or keep them apart.
_STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
_JOINERS = "\u200c\u200d"
_STRING = re.compile(r'"(?:[^"]|"")*"')  # a quoted cell of CSV
_SPACES = {"\t", "\n"}


def printable(text: str, most: int | None = None) -> str:
    r"""A text in one line; only its first `most` characters, if it has more.

    >>> print(printable("a\tb\x1b[2J" + "c" * 5, 9))
    a\tb\x1b[2Jcc …
    >>> print(printable("k1\n2026 \x9b2K\u202eno\u2028 é 東"))
    k1\n2026 \x9b2K\u202eno\u2028 é 東
    >>> printable("12\u00a0°C \U0001f469\u200d\U0001f680") == "12\u00a0°C \U0001f469\u200d\U0001f680"
    True
    """
    if most is not None and len(text) > most:
        text = f"{text[:most]} …"
    return text if text.isprintable() else "".join(map(_escaped, text))


def printable_lines(text: str) -> str:
    r"""A text of several lines, with their tabs.

    >>> print(printable_lines("a\nc\rd"))
    a
    c\rd
    """
    return "".join(one if one in _SPACES else _escaped(one) for one in text)


def printable_json(text: str) -> str:
    r"""A JSON document, which stays the same document.

    >>> print(printable_json('{\n  "k": "\x9b2K\u202e🎈"\n}'))
    {
      "k": "\u009b2K\u202e🎈"
    }
    """
    return "".join(one if one in _SPACES or _harmless(one) else _of_json(one) for one in text)


def printable_csv(text: str) -> str:
    r"""A CSV document, each row in one line.

    >>> print(printable_csv('k,v\n"a\n""b""\x1b]52;c;x\x07",1\n'), end="")
    k,v
    "a\n""b""\x1b]52;c;x\x07",1
    """
    in_one_line = _STRING.sub(lambda cell: printable(cell[0]), text)
    return printable_lines(in_one_line.replace("\r\n", "\n"))


def printable_facts(facts: Mapping[str, object]) -> dict[str, object]:
    r"""The facts of a log event, by name, each in one line.

    >>> print(printable_facts({"event": "refused", "key": "k\n2026 [info] all is well"})["key"])
    k\n2026 [info] all is well
    """
    return {
        printable(name): printable(value) if isinstance(value, str) else value
        for name, value in facts.items()
    }


def _escaped(one: str) -> str:
    return one if _harmless(one) else one.encode("unicode_escape").decode()


def _harmless(one: str) -> bool:
    return one.isprintable() or one in _JOINERS or category(one) not in _STEERING


def _of_json(one: str) -> str:
    data = one.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{data[at : at + 2].hex()}" for at in range(0, len(data), 2))
