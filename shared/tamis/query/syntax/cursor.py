"""A cursor over the tokens of a statement, which reports the position of an unexpected token."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import SqlError
from tamis.query.syntax.dialect import RESERVED, is_word, span
from tamis.query.syntax.text import Text


@dataclass(frozen=True)
class Name:
    """A name after case folding, and the offset at which it stands."""

    text: str
    offset: int


def name_of(identifier: exp.Expr) -> Name:
    """The name of an identifier in a syntax tree."""
    text = identifier.name
    return Name(text if identifier.args.get("quoted") else text.lower(), span(identifier)[0])


LONGEST_NAME = 100
COLUMN_NAME = "the name of a column"
REMOVE = "remove this parenthesis, or write ( before it"
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")
_WRITTEN_NAME = re.compile(r"\w[^\s,;()<>=|'\"]*")


class Cursor:
    """A position in a list of tokens of one statement; `end` is the offset just after them."""

    def __init__(self, text: Text, tokens: list[Token], end: int) -> None:
        self.text = text
        self.tokens = tokens
        self.end = end
        self.at = 0

    @property
    def current(self) -> Token | None:
        """The next token; None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def offset(self) -> int:
        """The offset of the next token; at the end, the offset after the last token."""
        return self.current.start if self.current else self.end

    def peek(self, ahead: int = 0) -> str:
        """The next token in capitals if it is a word, else an empty string."""
        index = self.at + ahead
        return (
            self.tokens[index].text.upper()
            if index < len(self.tokens) and is_word(self.tokens[index])
            else ""
        )

    def word(self, *words: str) -> bool:
        """Take these words if they are the next tokens; returns True if they are."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def symbol(self, symbol: str) -> bool:
        """Take this symbol if it is the next token; returns True if it is."""
        token = self.current
        quoted = token is not None and token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        if token is not None and token.text == symbol and not quoted:
            self.at += 1
            return True
        return False

    def take(self) -> Token | None:
        """Take the next token; None at the end."""
        token = self.current
        self.at += token is not None
        return token

    def rest(self) -> list[Token]:
        """Take all remaining tokens."""
        rest, self.at = self.tokens[self.at :], len(self.tokens)
        return rest

    def unexpected(self, expected: str, hint: str) -> SqlError:
        """The error for a next token that isn't `expected`."""
        token = self.current
        what = f"expected {expected}, found '{shorten(token.text)}'" if token else f"{expected} is missing"
        return self.text.error(what, self.offset, REMOVE if closes_nothing(self.tokens, self.at) else hint)

    def unexpected_in_column(self, expected: str, hint: str) -> SqlError:
        """The error for a next token that isn't `expected` around the name of a column. The hint puts a name
        such as `air-temp` in double quotes if the token is part of it.
        """
        at = (
            self.at
            if self.current is not None and self.current.token_type == TokenType.NUMBER
            else self.at - 1
        )
        token = self.tokens[at] if 0 <= at < len(self.tokens) else None
        quoted = token is not None and token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        if token is not None and not quoted:
            written = _WRITTEN_NAME.match(self.text.text, token.start)
            apart = written is None or written.end() <= self.offset
            if written is not None and not apart and not _PLAIN_NAME.fullmatch(written[0]):
                why = "a name needs them if it begins with a digit"
                why += " or has other characters than letters, digits and _"
                hint = f'write "{shorten(written[0])}" with double quotes: {why}'
        return self.unexpected(expected, hint)

    def expect_word(self, word: str, hint: str) -> None:
        """Take this word. Raises `SqlError` for any other token."""
        if not self.word(word):
            raise self.unexpected(word, hint)

    def name(self, what: str, hint: str) -> Name:
        """Take a name, folded to lower case unless quoted. Raises `SqlError` for a reserved word or another
        token.

        `what` describes the name in messages.
        """
        token = self.current
        if token is not None and token.token_type == TokenType.IDENTIFIER:
            name = Name(token.text, token.start)
        elif token is not None and is_word(token) and token.text.upper() not in RESERVED:
            name = Name(token.text.lower(), token.start)
        else:
            if token is not None and is_word(token):
                hint = f'"{token.text}" is a reserved word: choose another name, or put it in double quotes'
            elif what == COLUMN_NAME:
                raise self.unexpected_in_column(what, hint)
            raise self.unexpected(what, hint)
        if not name.text or len(name.text) > LONGEST_NAME:
            raise self.text.error(
                f"{what} must have 1 to {LONGEST_NAME} characters", name.offset, "choose another name"
            )
        self.at += 1
        return name

    def group(self, what: str, hint: str) -> Cursor:
        """Take a group in parentheses; returns a cursor over its inside."""
        opening = self.offset
        if not self.symbol("("):
            raise self.unexpected(f"( {what} )", hint)
        first, depth = self.at, 1
        while token := self.take():
            if token.token_type in (TokenType.L_PAREN, TokenType.R_PAREN):
                depth += 1 if token.token_type == TokenType.L_PAREN else -1
                if depth == 0:
                    return Cursor(self.text, self.tokens[first : self.at - 1], token.start)
        unclosed = self._unclosed_check(first)
        raise self.text.error(
            "this parenthesis is never closed", opening if unclosed is None else unclosed, "close it with )"
        )

    def _unclosed_check(self, first: int) -> int | None:
        """The offset of the parenthesis of a CHECK that isn't closed; None if there is none. A comma directly
        inside a CHECK belongs to the list of columns around it.
        """
        opened: list[int] = []
        for index in range(first, len(self.tokens)):
            match self.tokens[index].token_type:
                case TokenType.L_PAREN:
                    opened.append(index)
                case TokenType.R_PAREN if opened:
                    opened.pop()
                case TokenType.COMMA if opened and self.tokens[opened[-1] - 1].text.upper() == "CHECK":
                    return self.tokens[opened[-1]].start
        return None

    def items(self) -> list[Cursor]:
        """Take the remaining tokens, split at the commas outside parentheses."""
        cursors, first, depth = [], self.at, 0
        for index in range(self.at, len(self.tokens)):
            token = self.tokens[index]
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            if depth == 0 and token.token_type == TokenType.COMMA:
                cursors.append(Cursor(self.text, self.tokens[first:index], token.start))
                first = index + 1
        cursors.append(Cursor(self.text, self.tokens[first:], self.end))
        self.at = len(self.tokens)
        return cursors

    def finish(self, hint: str) -> None:
        """Raise `SqlError` if a token remains."""
        if self.current is not None:
            what = f"unexpected '{shorten(self.current.text)}'"
            raise self.text.error(what, self.offset, REMOVE if closes_nothing(self.tokens, self.at) else hint)


def closes_nothing(tokens: list[Token], at: int) -> bool:
    """Tell if the token at an index is a closing parenthesis without an opening one before it."""
    if at >= len(tokens) or tokens[at].token_type != TokenType.R_PAREN:
        return False
    kinds = [token.token_type for token in tokens[: at + 1]]
    return kinds.count(TokenType.R_PAREN) > kinds.count(TokenType.L_PAREN)


def shorten(text: str) -> str:
    """The first forty characters of a token, for a message."""
    return text if len(text) <= 40 else text[:37] + "…"
