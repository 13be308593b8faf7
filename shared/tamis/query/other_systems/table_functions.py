"""Flink's windows, `TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), size))`, as `TUMBLE(s, ts, size)`.

The words TABLE and DESCRIPTOR are left out of the tokens, and named arguments (`DATA => TABLE s`) are put
into their order. All other tokens keep their place in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from tamis.query.other_systems.clauses import arguments, closing, word

# The names of arguments in the order in which the functions take them without names.
_NAMES = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}


def without_table_functions(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a SELECT with Flink's windows in the form of Tamis. Others are left as they are."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        call = _call(tokens, at)
        if call is None:
            found.append(tokens[at])
            at += 1
        else:
            inner, at = call
            found += inner
    return found


def _call(tokens: Sequence[Token], at: int) -> tuple[list[Token], int] | None:
    """The window function in the TABLE(…) at `at`, and the index after it; None for anything else."""
    words = [word(token) if token.text != "(" else "(" for token in tokens[at : at + 4]]
    if len(words) < 4 or words[:2] != ["TABLE", "("] or words[2] not in _NAMES or words[3] != "(":
        return None
    inner, outer = closing(tokens, at + 3), closing(tokens, at + 1)
    if inner is None or outer != inner + 1:
        return None
    given = [list(tokens[a:b]) for a, b in arguments(tokens, at + 3, inner)]
    ordered = _ordered(given, _NAMES[words[2]])
    found = [tokens[at + 2], tokens[at + 3]]
    for index, argument in enumerate(ordered):
        if index:
            found.append(Token(TokenType.COMMA, ",", start=argument[0].start, end=argument[0].start))
        found += argument
    return [*found, tokens[inner]], outer + 1


def _ordered(given: Sequence[list[Token]], names: Sequence[str]) -> list[list[Token]]:
    """The arguments in their order, without their names, TABLE and DESCRIPTOR. Empty ones are left out."""
    placed: list[tuple[int, list[Token]]] = []
    for index, argument in enumerate(given):
        named = len(argument) > 1 and argument[1].text == "=>" and word(argument[0]) in names
        value = _plain(argument[2:] if named else argument)
        if value:
            placed.append((names.index(word(argument[0])) if named else index, value))
    return [argument for _, argument in sorted(placed, key=lambda one: one[0])]


def _plain(argument: list[Token]) -> list[Token]:
    """`s` for `TABLE s`, and `ts` for `DESCRIPTOR(ts)`."""
    if len(argument) == 2 and word(argument[0]) == "TABLE":
        return argument[1:]
    if len(argument) == 4 and word(argument[0]) == "DESCRIPTOR" and argument[1].text == "(":
        return argument[2:3]
    return argument
