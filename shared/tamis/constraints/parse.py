"""Parser of constraints: SQL conditions over named variables, read with exact numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

from tamis.constraints.formula import All, Comparison, Formula, Operand, Some, Sum
from tamis.errors import RefusedError, SqlError, SqlErrors
from tamis.query.syntax.cursor import Cursor
from tamis.query.syntax.dialect import span, tokenize
from tamis.query.syntax.limits import DEEPEST, check_limits, too_deep
from tamis.query.syntax.parser import expression_tree
from tamis.query.syntax.text import LARGEST_TEXT, Text

# Some 3,000 comparisons, and a second of parsing: far more than people or the planner write.
MOST_TOKENS = 20_000
# Exact arithmetic on longer numbers becomes slow, and no measurement has so many digits.
MOST_DIGITS = 300
_NUMBER = re.compile(r"(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.LT: "<",
    exp.LTE: "<=",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GTE: ">=",
    exp.GT: ">",
}
_OPPOSITE = {"<": ">=", "<=": ">", "=": "<>", "<>": "=", ">=": "<", ">": "<="}
_WRITE = "write comparisons such as x - y <= 3 with AND, OR, NOT, BETWEEN and IN"


def parse(text: str, variables: Sequence[str]) -> Formula:
    """The formula of a SQL condition over the variables. NOT, BETWEEN and IN are resolved.

    An unquoted name is the variable that is spelled so, or else the only one that differs by case at most.
    Raises `SqlErrors` for mistakes, with their positions, and `RefusedError` for what no theory can say.

    >>> parse("NOT x >= 1 / 2", ["x"]).op
    '<'
    """
    source = Text(text)
    try:
        if len(text) > LARGEST_TEXT:
            raise source.error(f"the text is longer than {LARGEST_TEXT} characters", 0, "split the relation")
        try:
            tokens = tokenize(text)
        except SqlglotError:
            what, hint = (
                "these constraints can't be read as SQL",
                "look for characters that SQL doesn't allow",
            )
            raise source.error(what, 0, hint) from None
        cursor = Cursor(source, tokens, tokens[-1].end + 1 if tokens else 0)
        check_limits(cursor, MOST_TOKENS)
        for token in tokens:
            if token.token_type in (TokenType.SELECT, TokenType.WITH):
                raise RefusedError(
                    "a query (SELECT or WITH) or a recursion inside a constraint is refused",
                    where=str(source.position(token.start)),
                    hint="use the operations of relations: select, project, join, union, difference, rename",
                )
        tree = expression_tree(cursor)
        if too_deep(tree):
            what = f"the expression is nested deeper than {DEEPEST} levels"
            raise source.error(what, 0, "remove parentheses, or split sums")
        return _Reader(source, variables).formula(tree, negated=False)
    except SqlError as error:
        raise SqlErrors([error]) from None


class _Reader:
    """Reads a syntax tree."""

    def __init__(self, text: Text, variables: Sequence[str]) -> None:
        self._text = text
        self._exact = frozenset(variables)
        self._folded: dict[str, list[str]] = {}
        for name in variables:
            self._folded.setdefault(name.lower(), []).append(name)

    def formula(self, node: exp.Expr, negated: bool) -> Formula:
        match node:
            case exp.Paren() | exp.Not():
                return self.formula(node.this, negated != isinstance(node, exp.Not))
            case exp.And() | exp.Or():
                parts = tuple(self.formula(part, negated) for part in _operands(node))
                return All(parts) if isinstance(node, exp.And) != negated else Some(parts)
            case exp.Boolean():
                return All() if bool(node.this) != negated else Some()
            case exp.Between():
                bounds = (
                    self._comparison(node, node.this, ">=", node.args["low"], negated),
                    self._comparison(node, node.this, "<=", node.args["high"], negated),
                )
                return Some(bounds) if negated else All(bounds)
            case exp.In() if node.expressions:
                members = tuple(
                    self._comparison(node, node.this, "=", member, negated) for member in node.expressions
                )
                return All(members) if negated else Some(members)
        if type(node) in _OPERATORS:
            return self._comparison(node, node.this, _OPERATORS[type(node)], node.args["expression"], negated)
        if isinstance(node, exp.Is):
            raise self._refused(node)
        if isinstance(node, exp.Column | exp.Literal | exp.Binary | exp.Neg):
            raise self._mistake("a comparison is missing", node, _WRITE)
        raise self._refused(node)

    def _comparison(
        self, node: exp.Expr, one: exp.Expr, op: str, other: exp.Expr, negated: bool
    ) -> Comparison:
        op = _OPPOSITE[op] if negated else op
        left, right = self._operand(one), self._operand(other)
        if op in (">", ">="):
            left, op, right = right, "<" if op == ">" else "<=", left
        names = frozenset(self._name(column) for side in (one, other) for column in side.find_all(exp.Column))
        return Comparison(left, op, right, names, self._text.position(span(node)[0]))

    def _operand(self, node: exp.Expr) -> Operand:
        bare = node.unnest()
        if isinstance(bare, exp.Literal) and bare.args.get("is_string"):
            return str(bare.this)
        return self._sum(bare)

    def _sum(self, node: exp.Expr) -> Sum:
        match node:
            case exp.Paren():
                return self._sum(node.this)
            case exp.Column():
                return Sum({self._name(node): Fraction(1)})
            case exp.Neg():
                return Sum().plus(self._sum(node.this), Fraction(-1))
            case exp.Literal() if not node.args.get("is_string"):
                return Sum(constant=self._number(node))
            case exp.Add() | exp.Sub():
                factor = Fraction(1 if isinstance(node, exp.Add) else -1)
                return self._checked(node, self._sum(node.this).plus(self._sum(node.expression), factor))
            case exp.Mul():
                one, other = self._sum(node.this), self._sum(node.expression)
                if one.terms and other.terms:
                    raise self._nonlinear(node)
                factor, scaled = (other.constant, one) if one.terms else (one.constant, other)
                return self._checked(node, Sum().plus(scaled, factor))
            case exp.Div():
                one, other = self._sum(node.this), self._sum(node.expression)
                if other.terms:
                    raise self._nonlinear(node)
                if not other.constant:
                    raise self._mistake("this divides by zero", node, "divide by another number")
                return self._checked(node, Sum().plus(one, 1 / other.constant))
            case exp.Literal():
                raise self._mistake("a symbol can't be calculated with", node, "compare it by = or <>")
            case exp.Pow() | exp.Mod():
                raise self._nonlinear(node)
        if type(node) in _OPERATORS or isinstance(
            node, exp.Connector | exp.Not | exp.Boolean | exp.Predicate
        ):
            raise self._mistake("a comparison can't be compared", node, "join comparisons by AND")
        raise self._refused(node)

    def _checked(self, node: exp.Expr, found: Sum) -> Sum:
        for value in (found.constant, *found.terms.values()):
            if max(value.numerator.bit_length(), value.denominator.bit_length()) > 4 * MOST_DIGITS:
                raise self._mistake("the numbers of this sum get too long", node, "write shorter numbers")
        return found

    def _number(self, node: exp.Literal) -> Fraction:
        text = str(node.this)
        match = _NUMBER.fullmatch(text)
        if match is None or not (match[1] or match[2]):
            raise self._mistake(
                f"'{text[:40]}' is not a number", node, "write a number such as 3, 0.5 or 1 / 3"
            )
        exponent = match[3] or "0"
        if len(text) > MOST_DIGITS or len(exponent) > 5 or abs(int(exponent)) > MOST_DIGITS:
            raise self._mistake(
                f"this number has more than {MOST_DIGITS} digits", node, "write a shorter number"
            )
        return Fraction(text)

    def _name(self, column: exp.Column) -> str:
        if column.args.get("table") or not isinstance(column.this, exp.Identifier):
            raise self._mistake(
                "a variable has a plain name", column, f"give one of {', '.join(sorted(self._exact))}"
            )
        name, quoted = column.this.name, bool(column.this.args.get("quoted"))
        if name in self._exact:
            return name
        similar = [] if quoted else self._folded.get(name.lower(), [])
        if len(similar) == 1:
            return similar[0]
        known = ", ".join(sorted(self._exact)) or "none"
        what = "fits several variables" if similar else "is not a variable"
        raise self._mistake(f"'{name}' {what}", column, f"the variables are: {known}")

    def _mistake(self, what: str, node: exp.Expr, hint: str) -> SqlError:
        return self._text.error(what, span(node)[0], hint)

    def _nonlinear(self, node: exp.Expr) -> RefusedError:
        return RefusedError(
            "nonlinear constraints are refused: a projection of them can't be said in the same form",
            where=str(self._text.position(span(node)[0])),
            hint="write sums of variables with constant coefficients",
        )

    def _refused(self, node: exp.Expr) -> RefusedError:
        """The error for what is SQL, and no constraint."""
        if isinstance(node, exp.Func):
            what, hint = "functions are refused: they aren't linear in their arguments", _WRITE
        elif node.find(exp.Null) is not None:
            what, hint = "NULL is refused: each variable has a value at each point", _WRITE
        else:
            what, hint = "this isn't a linear constraint", _WRITE
        return RefusedError(what, where=str(self._text.position(span(node)[0])), hint=hint)


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The operands of a chain of ANDs or ORs, in order. The chain may be as long as the text."""
    out, stack = [], [node]
    while stack:
        top = stack.pop()
        if type(top) is type(node):
            stack += [top.args["expression"], top.this]
        else:
            out.append(top)
    return out
