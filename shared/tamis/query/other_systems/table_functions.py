"""Flink's windows, `TABLE(TUMBLE(TABLE s, DESCRIPTOR(ts), size))`, as `TUMBLE(s, ts, size)`.

Since Flink 2.0, they may stand without the outer `TABLE(…)`. The words TABLE and DESCRIPTOR are left out of
the tokens, and named arguments (`DATA => TABLE s`) are put into their order. `SESSION(s PARTITION BY k, …)`,
in both forms, becomes `SESSION(s, partition_by(k), …)`. Without PARTITION BY, Flink has sessions of all keys
together: `partition_by()`. All other tokens keep their place in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

from tamis.query.other_systems.clauses import arguments, closing, word

# The function that stands for PARTITION BY.
PARTITION = "partition_by"

# The names of arguments in the order in which the functions take them without names.
_NAMES = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP", "LENGTH"),
}


def without_table_functions(tokens: Sequence[Token]) -> list[Token]:
    """The tokens of a SELECT with Flink's windows in the form of Tamis. Others are left as they are."""
    found: list[Token] = []
    at = 0
    while at < len(tokens):
        call = _call(tokens, at) or _bare(tokens, at) or _session(tokens, at)
        if call is None:
            found.append(tokens[at])
            at += 1
        else:
            inner, at = call
            found += inner
    return found


def _call(tokens: Sequence[Token], at: int) -> tuple[list[Token], int] | None:
    """The window function in the TABLE(…) at `at`, and the index after it; None for anything else."""
    if word(tokens[at]) != "TABLE":
        return None
    words = [word(token) if token.text != "(" else "(" for token in tokens[at : at + 4]]
    if len(words) < 4 or words[:2] != ["TABLE", "("] or words[2] not in _NAMES or words[3] != "(":
        return None
    inner, outer = closing(tokens, at + 3), closing(tokens, at + 1)
    if inner is None or outer != inner + 1:
        return None
    found = _written(tokens[at + 2 : inner + 1], _NAMES[words[2]], flink=True)
    return found, outer + 1


def _bare(tokens: Sequence[Token], at: int) -> tuple[list[Token], int] | None:
    """The window function at `at` if its first argument is `TABLE s`, and the index after it."""
    if word(tokens[at]) not in _NAMES:
        return None
    words = [word(token) for token in tokens[at : at + 3]]
    if len(words) < 3 or words[0] not in _NAMES or tokens[at + 1].text != "(" or words[2] != "TABLE":
        return None
    end = closing(tokens, at + 1)
    if end is None:
        return None
    return _written(tokens[at : end + 1], _NAMES[words[0]], flink=True), end + 1


def _session(tokens: Sequence[Token], at: int) -> tuple[list[Token], int] | None:
    """The call of SESSION at `at` if it has a PARTITION BY, and the index after it."""
    if word(tokens[at]) != "SESSION" or at + 1 >= len(tokens) or tokens[at + 1].text != "(":
        return None
    end = closing(tokens, at + 1)
    if end is None or not any(token.token_type is TokenType.PARTITION_BY for token in tokens[at:end]):
        return None
    return _written(tokens[at : end + 1], _NAMES["SESSION"], flink=False), end + 1


def _written(call: Sequence[Token], names: Sequence[str], *, flink: bool) -> list[Token]:
    """The tokens of a call with its arguments in their order and in the form of Tamis."""
    given = [list(call[a:b]) for a, b in arguments(call, 1, len(call) - 1)]
    ordered = _ordered(given, names)
    if word(call[0]) == "SESSION" and ordered:
        stream, key = _partitioned(ordered[0])
        if key is not None or flink:
            ordered[:1] = [stream, key or _key([], stream[-1])]
    found = [call[0], call[1]]
    for index, argument in enumerate(ordered):
        if index:
            found.append(Token(TokenType.COMMA, ",", start=argument[0].start, end=argument[0].start))
        found += argument
    return [*found, call[-1]]


def _partitioned(argument: list[Token]) -> tuple[list[Token], list[Token] | None]:
    """`s` and `partition_by(k)` for `s PARTITION BY k`; None without PARTITION BY."""
    at = next((i for i, one in enumerate(argument) if one.token_type is TokenType.PARTITION_BY), None)
    if not at:
        return argument, None
    columns = argument[at + 1 :]
    if columns and columns[0].text == "(" and closing(columns, 0) == len(columns) - 1:
        columns = columns[1:-1]
    return _plain(argument[:at]), _key(columns, argument[at])


def _key(columns: list[Token], place: Token) -> list[Token]:
    """`partition_by(…)` with these tokens, at the place of a token."""
    end = (columns[-1] if columns else place).end
    name = Token(TokenType.VAR, PARTITION, start=place.start, end=place.end)
    opening = Token(TokenType.L_PAREN, "(", start=place.end, end=place.end)
    return [name, opening, *columns, Token(TokenType.R_PAREN, ")", start=end, end=end)]


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
