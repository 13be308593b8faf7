"""Reading the head of a statement, token by token, with the place of what doesn't fit."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from tamis.errors import SqlError
from tamis.query.context import Name
from tamis.query.dialect import RESERVED, is_word
from tamis.query.text import Text

LONGEST_NAME = 100


class Cursor:
    """A position in a run of tokens of one statement; `end` is the offset just behind them."""

    def __init__(self, text: Text, tokens: list[Token], end: int) -> None:
        self.text = text
        self.tokens = tokens
        self.end = end
        self.at = 0

    @property
    def current(self) -> Token | None:
        """The next token, None at the end."""
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    @property
    def offset(self) -> int:
        """Where the next token stands, or would stand."""
        return self.current.start if self.current else self.end

    def peek(self, ahead: int = 0) -> str:
        """The word that comes next, in capitals; empty where none does."""
        index = self.at + ahead
        return (
            self.tokens[index].text.upper()
            if index < len(self.tokens) and is_word(self.tokens[index])
            else ""
        )

    def word(self, *words: str) -> bool:
        """Take these words if they come next."""
        if all(self.peek(ahead) == word for ahead, word in enumerate(words)):
            self.at += len(words)
            return True
        return False

    def symbol(self, symbol: str) -> bool:
        """Take this sign if it comes next."""
        token = self.current
        quoted = token is not None and token.token_type in (TokenType.STRING, TokenType.IDENTIFIER)
        if token is not None and token.text == symbol and not quoted:
            self.at += 1
            return True
        return False

    def take(self) -> Token | None:
        """The next token, taken."""
        token = self.current
        self.at += token is not None
        return token

    def rest(self) -> list[Token]:
        """All the tokens that are left, taken."""
        rest, self.at = self.tokens[self.at :], len(self.tokens)
        return rest

    def unexpected(self, expected: str, hint: str) -> SqlError:
        """The mistake that something else stands where `expected` belongs."""
        token = self.current
        what = (
            f"'{shorten(token.text)}' stands where {expected} belongs" if token else f"{expected} is missing"
        )
        return self.text.error(what, self.offset, hint)

    def expect_word(self, word: str, hint: str) -> None:
        """Take this word, or raise."""
        if not self.word(word):
            raise self.unexpected(word, hint)

    def name(self, what: str, hint: str) -> Name:
        """Take a name; folded to lower case unless quoted. Raises for a reserved word or anything else."""
        token = self.current
        if token is not None and token.token_type == TokenType.IDENTIFIER:
            name = Name(token.text, token.start)
        elif token is not None and is_word(token) and token.text.upper() not in RESERVED:
            name = Name(token.text.lower(), token.start)
        else:
            if token is not None and is_word(token):
                hint = f'"{token.text}" is a reserved word: choose another name, or put it in double quotes'
            raise self.unexpected(what, hint)
        if not name.text or len(name.text) > LONGEST_NAME:
            raise self.text.error(
                f"{what} has 1 to {LONGEST_NAME} characters", name.offset, "choose another name"
            )
        self.at += 1
        return name

    def group(self, what: str, hint: str) -> Cursor:
        """Take a parenthesised group and return a cursor over its inside."""
        opening = self.offset
        if not self.symbol("("):
            raise self.unexpected(f"( {what} )", hint)
        first, depth = self.at, 1
        while token := self.take():
            if token.token_type in (TokenType.L_PAREN, TokenType.R_PAREN):
                depth += 1 if token.token_type == TokenType.L_PAREN else -1
                if depth == 0:
                    return Cursor(self.text, self.tokens[first : self.at - 1], token.start)
        raise self.text.error("this parenthesis is never closed", opening, "close it with )")

    def items(self) -> list[Cursor]:
        """What is left, cut at the commas outside parentheses, taken."""
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
        """Raise where something is left."""
        if self.current is not None:
            what = f"'{shorten(self.current.text)}' stands where nothing more belongs"
            raise self.text.error(what, self.offset, hint)


def shorten(text: str) -> str:
    """At most forty characters of a token for a message."""
    return text if len(text) <= 40 else text[:37] + "…"
