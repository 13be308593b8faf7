"""The SQL dialect: sqlglot's RisingWave with fewer reserved words, strict, and with positions.

Statement heads (CREATE STREAM, WITH (…), …) are read by `tamis.query.syntax.cursor` over the same tokens;
SELECTs and expressions are parsed by sqlglot. Here sqlglot knows no functions, because names are resolved
later. It accepts some texts that Postgres refuses; the overridden methods refuse these, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.dialects.risingwave import RisingWave
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parsers.risingwave import RisingWaveParser
from sqlglot.tokenizer_core import Token, TokenType

from tamis.query.syntax.bit_operators import BitOperators

T = TypeVar("T")

# After one of these, `both` in TRIM(both) is the name of a column.
_ENDS_NAME = (TokenType.R_PAREN, TokenType.COMMA, TokenType.DOT)

# The keywords of SELECT. All other words, such as temp, row or format, are ordinary names.
_WORDS = """
    ALL, AND, ANTI, ANY, AS, ASC, ASOF, BETWEEN, CASE, CROSS, CURRENT_DATE, CURRENT_TIME,
    CURRENT_TIMESTAMP, DESC, DISTINCT, ELSE, END, ESCAPE, EXCEPT, EXISTS, FALSE, FETCH, FILTER, FROM, FULL,
    GROUP BY, HAVING, ILIKE, IN, INNER, INTERSECT, INTERVAL, INTO, IS, JOIN, LATERAL, LEFT, LIKE, LIMIT,
    NATURAL, NOT, NULL, OFFSET, ON, OR, ORDER BY, OUTER, OVER, PARTITION BY, QUALIFY, RANGE, RIGHT,
    ROWS, SELECT, SEMI, SOME, THEN, TIMESTAMP, TRUE, UNION, USING, VALUES, WHEN, WHERE, WINDOW, WITH"""
WORDS = frozenset(" ".join(word.split()) for word in _WORDS.split(","))


# Words that can be names only in quotes. `timestamp` isn't among them, since many columns have that name.
RESERVED = frozenset(word for word in WORDS if " " not in word)
RESERVED -= {"ESCAPE", "FILTER", "RANGE", "ROWS", "TIMESTAMP", "WINDOW"}
RESERVED |= {"GROUP", "ORDER"}
_WORD = re.compile(r"[^\W\d]\w*")


class NoReading(exp.Expression, exp.Condition):
    """NO READING FOR length: `this` is the length."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


def is_word(token: Token) -> bool:
    """Tell if a token is a keyword or an unquoted name."""
    return token.token_type not in _QUOTED and _like_word(token.text)


_QUOTED = (TokenType.STRING, TokenType.IDENTIFIER, TokenType.NUMBER)


@lru_cache(maxsize=10_000)  # each token is looked at some ten times, and texts have the same words
def _like_word(text: str) -> bool:
    return bool(_WORD.fullmatch(text))


class SyntaxProblem(ParseError):
    """A syntax error of sqlglot's parser: the `offset` where it stopped, and the token `found` there, if
    any.
    """

    def __init__(self, message: str, offset: int, found: str | None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.found = found


def span(node: exp.Expr) -> tuple[int, int]:
    """First and last offset of an expression in its text."""
    found: tuple[int, int] | None = node.meta.get("span")
    if found is not None:
        return found
    places = [
        span(child) for child in node.iter_expressions() if "start" in child.meta or "span" in child.meta
    ]
    if isinstance(node.meta.get("start"), int):
        places.append((node.meta["start"], node.meta["end"]))
    if not places:
        places = [span(child) for child in node.iter_expressions()] or [node.meta.get("last", (0, 0))]
    return min(start for start, _ in places), max(end for _, end in places)


def _closed(parser: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The parser of a function, which must end before a closing parenthesis: sqlglot would let it be missing,
    and a comma and a format in front of it.
    """

    def parse(self: _Parser) -> Any:
        node = parser(self)
        added = isinstance(node, exp.Cast) and any(
            node.args.get(one) for one in ("format", "default", "action")
        )
        comma = self._prev.token_type == TokenType.COMMA
        if added or comma:
            self.raise_error("Expecting )", self._prev)
        if not self._match(TokenType.R_PAREN, advance=False):
            self.raise_error("Expecting )")
        return node

    return parse


class _Parser(BitOperators):
    FUNC_TOKENS: ClassVar[set[TokenType]] = {*RisingWaveParser.FUNC_TOKENS, TokenType.ROWS}
    TABLE_ALIAS_TOKENS: ClassVar[set[TokenType]] = set(RisingWaveParser.TABLE_ALIAS_TOKENS) - {
        TokenType.MATCH_CONDITION
    }
    # Only the functions with a syntax of their own; all others are name(arguments).
    FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        **{
            name: _closed(RisingWaveParser.FUNCTION_PARSERS[name]) for name in ("CAST", "TRY_CAST", "EXTRACT")
        },
        "SUBSTRING": _closed(lambda self: self._parse_substring_of()),
        "TRIM": _closed(lambda self: self._parse_trim_of()),
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
        "CASE": RisingWaveParser.NO_PAREN_FUNCTION_PARSERS["CASE"]
    }

    def _parse_substring_of(self) -> exp.Expr:
        """`SUBSTRING(text, start, length)`, or the words FROM and FOR in place of the commas."""
        args = self._parse_csv(self._parse_disjunction)
        if len(args) == 1:
            start = self._parse_needed() if self._match(TokenType.FROM) else None
            length = self._parse_needed() if self._match_text_seq("FOR") else None
            if length is not None and start is None:
                start = exp.Literal.number(1)
            args += [arg for arg in (start, length) if arg]
        return exp.Anonymous(this="substring", expressions=args)

    def _parse_trim_of(self) -> exp.Expr:
        """`TRIM(text, characters)`, or `TRIM([BOTH | LEADING | TRAILING] [characters] FROM text)`."""
        name, sided = "trim", False
        for word, one in (("BOTH", "trim"), ("LEADING", "ltrim"), ("TRAILING", "rtrim")):
            follows = self._next.token_type not in _ENDS_NAME
            if follows and self._match_text_seq(word):
                name, sided = one, True
                break
        empty = self._match(TokenType.FROM, advance=False)
        args: list[exp.Expr | None] = [] if empty else [*self._parse_csv(self._parse_disjunction)]
        if len(args) <= 1 and self._match(TokenType.FROM):
            args = [self._parse_needed(), *args]
        elif sided:
            self.raise_error("Expecting FROM")
        return exp.Anonymous(this=name, expressions=args)

    def _parse_needed(self) -> exp.Expr | None:
        value = self._parse_disjunction()
        if value is None:
            self.raise_error("Required argument")
        return value

    def _parse_types(self, *args: Any, **options: Any) -> exp.Expr | None:
        # Other words are single ones: DOUBLE PRECISION is the only type of two.
        found = super()._parse_types(*args, **options)
        kind = None if found is None else found.args.get("kind")
        if isinstance(kind, exp.Identifier) and kind.name.lower() == "double":
            self._match_text_seq("PRECISION")
        return found

    def raise_error(self, message: str, token: Token | None = None) -> None:
        # For a missing END, sqlglot passes the token before the place.
        found = self._curr if "END" in message else token or self._curr
        if found:
            raise SyntaxProblem(message, found.start, found.text)
        raise SyntaxProblem(message, self._prev.end + 1 if self._prev else 0, None)

    def expression(self, instance: Any, token: Token | None = None, comments: list[str] | None = None) -> Any:
        node = super().expression(instance, token, comments)
        if self._prev:
            node.meta["last"] = (self._prev.start, self._prev.end)
        return node

    def _placed(self, parse: Callable[[], T]) -> T:
        start = self._curr
        node = parse()
        if isinstance(node, exp.Expr) and start and self._prev and self._prev.end >= start.start:
            node.meta["span"] = (start.start, self._prev.end)
        return node

    def _parse_unary(self) -> exp.Expr | None:
        return self._placed(self._parse_no_reading)

    def _parse_no_reading(self) -> exp.Expr | None:
        words = [token.text.upper() for token in self._tokens[self._index : self._index + 3]]
        if words == ["NO", "READING", "FOR"]:
            self._advance(3)
            length = super()._parse_unary()
            if length is None:
                self.raise_error("Expecting INTERVAL")
            return NoReading(this=length)
        node: exp.Expr | None = super()._parse_unary()
        return node

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._placed(super()._parse_bitwise)

    def _parse_equality(self, parse_is: bool = True) -> exp.Expr | None:
        return self._placed(lambda: super(_Parser, self)._parse_equality(parse_is))

    def _parse_disjunction(self) -> exp.Expr | None:
        return self._placed(super()._parse_disjunction)

    def _parse_expression(self) -> exp.Expr | None:
        return self._placed(super()._parse_expression)

    def _parse_alias(self, this: exp.Expr | None, explicit: bool = False) -> exp.Expr | None:
        # As in Postgres, any word may follow AS; sqlglot also accepts numbers, signs, or nothing.
        given = self._curr.token_type == TokenType.ALIAS
        node = super()._parse_alias(this, explicit)
        if node is not this:
            self._check_name(self._prev, reserved=not given)
        elif given:
            self.raise_error("Expecting a name")
        return node

    def _parse_table_alias(self, *args: Any, **kwargs: Any) -> exp.TableAlias | None:
        given = self._curr.token_type == TokenType.ALIAS
        at = self._index + given
        alias = super()._parse_table_alias(*args, **kwargs)
        if alias is not None:
            self._check_name(self._tokens[at], reserved=True)
        elif given:
            self.raise_error("Expecting a name")
        return alias

    def _parse_interval(
        self, require_interval: bool = True, parse_function_unit: bool = True
    ) -> exp.Add | exp.Interval | None:
        # sqlglot reads a text or number after an interval as another interval, with or without +.
        if not require_interval:
            self.raise_error("Expecting INTERVAL")
        return super()._parse_interval(require_interval, parse_function_unit)

    def _check_name(self, token: Token, reserved: bool) -> None:
        """Raise unless `token` can be a name; with `reserved`, keywords of SELECT can't."""
        word = is_word(token) and not (reserved and token.text.upper() in RESERVED)
        if not word and token.token_type not in (TokenType.IDENTIFIER, TokenType.R_PAREN):
            self.raise_error("Expecting a name", token)

    def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
        if self._prev.token_type == TokenType.ALIAS:
            self.raise_error("Expecting an expression", self._prev)
        return super()._parse_projections()

    def _parse_primary(self) -> exp.Expr | None:
        # sqlglot reads ". 5" as 0.5, too.
        apart = self._curr.token_type == TokenType.DOT and self._next.start != self._curr.end + 1
        if apart and self._next.token_type == TokenType.NUMBER:
            self.raise_error("Expecting an expression")
        return super()._parse_primary()

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        # sqlglot reads x NOT IS NULL, too.
        if self._index > 1 and self._tokens[self._index - 2].token_type == TokenType.NOT:
            self.raise_error("Expecting an expression", self._prev)
        # And x IS DISTINCT FROM y IS DISTINCT FROM z.
        again = self._next if self._curr.token_type == TokenType.NOT else self._curr
        if isinstance(this, exp.NullSafeEQ | exp.NullSafeNEQ) and again.token_type == TokenType.DISTINCT:
            self.raise_error("Expecting AND", self._prev)
        return super()._parse_is(this)

    def _parse_is_rhs(self, distinct: bool = False) -> exp.Expr | None:
        # A word follows IS; sqlglot accepts any expression, and reads x IS + NULL, too.
        if not distinct and not is_word(self._curr):
            self.raise_error("Expecting NULL")
        return super()._parse_is_rhs(distinct)

    def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
        if self._curr.token_type == TokenType.DOT:
            self.raise_error("Expecting a stream")
        at = self._index
        table = self._placed(lambda: super(_Parser, self)._parse_table(*args, **kwargs))
        if isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier):
            # Postgres' * for inherited tables, which sqlglot drops.
            star = [token for token in self._tokens[at : self._index] if token.token_type == TokenType.STAR]
            if star:
                self.raise_error("Invalid *", star[0])
        return table

    def _parse_join(
        self,
        skip_join_token: bool = False,
        parse_bracket: bool = False,
        alias_tokens: Collection[TokenType] | None = None,
    ) -> exp.Join | None:
        comma = self._curr if self._curr.token_type == TokenType.COMMA else None
        at = self._index
        join = self._placed(
            lambda: super(_Parser, self)._parse_join(skip_join_token, parse_bracket, alias_tokens)
        )
        if comma and join is None:
            self.raise_error("Expecting a stream")
        # sqlglot reads USING without parentheses, too.
        for token, following in pairwise(self._tokens[at : self._index]):
            if token.token_type == TokenType.USING and following.token_type != TokenType.L_PAREN:
                self.raise_error("Expecting (", following)
        return join

    def _parse_join_parts(self) -> tuple[Token | None, Token | None, Token | None]:
        # LEFT ASOF JOIN is another spelling of ASOF LEFT JOIN.
        method, side, kind = super()._parse_join_parts()
        if side and not method and not kind and self._match_set(self.JOIN_METHODS):
            method = self._prev
            kind = self._prev if self._match_set(self.JOIN_KINDS) else None
        return method, side, kind

    def _parse_csv(self, parse_method: Callable[[], T | None], sep: TokenType = TokenType.COMMA) -> list[T]:
        items: list[T] = []
        while True:
            item = parse_method()
            if item is not None:
                items.append(item)
            more = self._match(sep)
            if item is None and (more or items):
                # sqlglot would skip a missing item between two commas or after the last comma.
                if more:
                    self._retreat(self._index - 1)
                self.raise_error("Expecting an expression")
            if not more:
                return items

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        low_at = self._index
        between = super()._parse_between(this)
        tokens = self._tokens[low_at : self._index]
        if not any(token.token_type == TokenType.AND for token in tokens):
            self.raise_error("Expecting AND")
        return between

    def _parse_case(self) -> exp.Expr | None:
        at = self._index
        case = super()._parse_case()
        tokens = self._tokens[at : self._index]
        count = [sum(t.token_type == kind for t in tokens) for kind in (TokenType.WHEN, TokenType.THEN)]
        if count[0] == 0 or count[0] != count[1]:
            self.raise_error("Expecting WHEN condition THEN value", tokens[0] if tokens else None)
        return case


def _marked(parser: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def parse(self: _Parser) -> Any:
        start = self._curr
        key, clause = parser(self)
        if isinstance(clause, exp.Expr):
            clause.meta["span"] = (start.start, self._prev.end)
        return key, clause

    return parse


_Parser.QUERY_MODIFIER_PARSERS = {
    token: _marked(parser) for token, parser in RisingWaveParser.QUERY_MODIFIER_PARSERS.items()
}


class Tamis(RisingWave):
    """sqlglot's RisingWave dialect with fewer keywords and the strict parser."""

    class Tokenizer(RisingWave.Tokenizer):
        BIT_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        HEX_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        BYTE_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        UNICODE_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
        COMMANDS: ClassVar[set[TokenType]] = set()
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            word: token
            for word, token in RisingWave.Tokenizer.KEYWORDS.items()
            if (not word[0].isalpha() or word in WORDS) and word != "&&"
        }

    Parser = _Parser


DIALECT = Tamis()


def tokenize(text: str) -> list[Token]:
    """The tokens of a statement's text, with their offsets in it."""
    return DIALECT.tokenize(text)


def parse_select(tokens: list[Token]) -> exp.Expr:
    """One SELECT (or UNION of them). Raises `SyntaxProblem`."""
    return _parse(tokens, lambda parser: parser._parse_ddl_select())


def parse_expression(tokens: list[Token]) -> exp.Expr:
    """One expression. Raises `SyntaxProblem`."""
    return _parse(tokens, lambda parser: parser._parse_disjunction())


def _match_condition(token: Token, following: list[Token]) -> Token:
    """MATCH_CONDITION before a parenthesis as a keyword. Everywhere else it is an ordinary name."""
    if token.text.upper() != "MATCH_CONDITION" or token.token_type is not TokenType.VAR:
        return token
    if not following or following[0].token_type is not TokenType.L_PAREN:
        return token
    return Token(TokenType.MATCH_CONDITION, token.text, start=token.start, end=token.end)


def _parse(tokens: list[Token], method: Callable[[Any], exp.Expr | None]) -> exp.Expr:
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens = tokens[:-1]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:  # sqlglot would parse the first part and ignore the rest
            raise SyntaxProblem("", token.start, token.text)
    tokens = [_match_condition(token, tokens[at + 1 : at + 2]) for at, token in enumerate(tokens)]
    parser = DIALECT.parser(error_level=ErrorLevel.IMMEDIATE)
    found = parser._parse(method, tokens) if tokens else []
    node = found[0] if found else None  # sqlglot returns None for a text that begins with ELSE
    if node is None:
        first = tokens[0] if tokens else None
        raise SyntaxProblem(
            "Expecting an expression", first.start if first else 0, first.text if first else None
        )
    return node
