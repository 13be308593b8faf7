"""Messages for syntax errors: the parser's complaint in the words of the user's text."""

from __future__ import annotations

import re
from difflib import get_close_matches
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import SqlError
from tamis.query.functions import AGGREGATE_FUNCTIONS, DAY, TIME_OF_DAY
from tamis.query.syntax.cursor import REMOVE, closes_nothing, shorten
from tamis.query.syntax.dialect import SyntaxProblem
from tamis.query.syntax.text import Text
from tamis.query.unsupported import AGGREGATES, FETCH, TABLE_FUNCTIONS, unsupported_function
from tamis.wording.file_text import number_hint

# sqlglot's message for what it expected.
_EXPECTED = re.compile(r"Expect(?:ing|ed) ([^<]{1,40}?)(?: but got .*)?$", re.DOTALL)
# Functions of other systems whose parentheses hold more than values.
_OWN_SYNTAX = (AGGREGATES - frozenset(AGGREGATE_FUNCTIONS)) | TABLE_FUNCTIONS
_STATEMENTS = ("CREATE", "DROP", "PAUSE", "RESUME", "SHOW", "EXPLAIN")
# The words behind the first word of a statement.
_DEFINED = ("STREAM", "ALERT", "TABLE", "FUNCTION", "PATTERN", "OR", "STREAMS", "ALERTS", "PATTERNS")
_CASE = {TokenType.WHEN: "a condition", TokenType.THEN: "a value", TokenType.ELSE: "a value"}
_OTHER_SIGNS = {"=>": ">=", "&": "AND"}
# Constants with a type in front of them, which Tamis doesn't have.
_TYPED = {"TIME": TIME_OF_DAY, "DATE": DAY}
_KEYWORDS = ("FROM", "JOIN", "WHERE", "GROUP", "HAVING", "AND", "BETWEEN", "INTERVAL", "UNION")

END_BEFORE = "end the statement before it with a semicolon"
OPTIONS_FIRST = "write the options before AS: CREATE ALERT name WITH (…) AS SELECT …"


def syntax_error(
    text: Text, problem: SyntaxProblem, tokens: list[Token], query: list[Token] | None = None
) -> SqlError:
    """The mistake to report for a syntax problem in `tokens`, a part of the tokens of `query` or all of them.

    If the tokens call an unsupported function with a syntax of its own, the function is named instead.
    """
    for token, following in pairwise(tokens):
        name = token.text.lower()
        refusal = unsupported_function(name) if name in _OWN_SYNTAX and following.text == "(" else None
        if refusal is not None:
            return text.error(refusal[0], token.start, refusal[1])
    for token, following in pairwise(tokens):
        if token.text.upper() == "FETCH" and following.text.upper() in ("FIRST", "NEXT"):
            return text.error(FETCH[0], token.start, FETCH[1])
        if token.text + following.text == "=<" and token.end + 1 == following.start:
            return text.error("unexpected '=<'", token.start, "write <=")
        if token.token_type in _CASE and following.token_type in (*_CASE, TokenType.END):
            # sqlglot reads END as a column here, and stops somewhere after it.
            hint = f"write {_CASE[token.token_type]} after {token.text.upper()}"
            return text.error(f"unexpected '{following.text}'", following.start, hint)
    for token, following in pairwise(tokens):
        if following.start == problem.offset and _begins_statement(token, following):
            # The parser has taken the first word as the other name of a source.
            return text.error(f"unexpected '{token.text}'", token.start, END_BEFORE)
    expected = _EXPECTED.match(problem.message)
    if problem.found is None:
        hint = f"write {expected[1]} here" if expected else "complete the expression or clause before it"
        return text.error("something is missing here", problem.offset, hint)
    return text.error(
        f"unexpected '{shorten(problem.found)}'",
        problem.offset,
        _hint(problem, expected, tokens, query or tokens),
    )


def _hint(
    problem: SyntaxProblem, expected: re.Match[str] | None, tokens: list[Token], query: list[Token]
) -> str:
    found = (problem.found or "").upper()
    at = next((i for i, token in enumerate(tokens) if token.start == problem.offset), len(tokens))
    if closes_nothing(tokens, at):
        return REMOVE
    if (number := _decimal_comma(tokens, at)) is not None:
        return number
    if 0 < at < len(tokens) and (hint := _typed(tokens[at - 1], tokens[at])) is not None:
        return hint
    if found in _OTHER_SIGNS:
        return f"write {_OTHER_SIGNS[found]}"
    if found == "WHERE" and _has_where(query, problem.offset):
        return "a query has only one WHERE; write the condition of a JOIN after ON"
    if found == "GROUP":
        return "write GROUP BY column, …"
    if expected and expected[1].startswith("CTE"):
        return "write name AS (SELECT …) after WITH and after each comma, then SELECT"
    if expected:
        name = "the name of a stream" if expected[1] == "table name" else expected[1]
        return f"write {name} here"
    if found == "WITH":
        return OPTIONS_FIRST
    if found in _STATEMENTS:
        return END_BEFORE
    if (keyword := _misspelt_keyword(found)) is not None:
        return f"did you mean {keyword}?"
    return "look for a missing comma, operator, AND or parenthesis before it"


def _begins_statement(token: Token, following: Token) -> bool:
    return token.text.upper() in _STATEMENTS and following.text.upper() in _DEFINED


def _typed(kind: Token, value: Token) -> str | None:
    """The hint for a constant of another type, such as TIME '22:00'; None for anything else."""
    return _TYPED.get(kind.text.upper()) if value.token_type is TokenType.STRING else None


def _has_where(query: list[Token], offset: int) -> bool:
    """True if the SELECT at an offset has a WHERE before the offset."""
    found = [False]  # one for each open parenthesis around the token
    for token in query:
        if token.start >= offset:
            break
        match token.token_type:
            case TokenType.L_PAREN:
                found.append(False)
            case TokenType.R_PAREN if len(found) > 1:
                found.pop()
            case TokenType.UNION | TokenType.EXCEPT | TokenType.INTERSECT:
                found[-1] = False
            case TokenType.WHERE:
                found[-1] = True
    return found[-1]


def _decimal_comma(tokens: list[Token], at: int) -> str | None:
    """The hint for a number with commas that has its second part at an index; None for anything else."""
    parts = tokens[at - 2 : at - 1] if at >= 2 else []
    for comma, number in zip(tokens[at - 1 :: 2], tokens[at::2], strict=False):
        kinds = (comma.token_type, number.token_type)
        if not parts or kinds != (TokenType.COMMA, TokenType.NUMBER):
            break
        if not parts[-1].end + 1 == comma.start == number.start - 1:
            break
        parts += [comma, number]
    return number_hint("".join(token.text for token in parts)) if len(parts) > 1 else None


def _misspelt_keyword(found: str) -> str | None:
    close = get_close_matches(found, _KEYWORDS, 1, 0.75)
    return close[0] if close and close[0] != found else None
