"""Atoms: linear comparisons of variables with exact coefficients, and equalities of symbols."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm
from typing import Literal, TypeAlias

from tamis.expressions.sql_text import identifier

Value: TypeAlias = Fraction | str
"""The value of a variable: a number or a symbol."""

_FLIPPED = {"<": ">", "<=": ">=", "=": "="}


@dataclass(frozen=True, slots=True)
class Linear:
    """`sum(coefficient * variable) op constant`.

    In normal form, which `linear` makes: terms by name, coefficients coprime integers and none zero, at least
    one term, and for `=` the first coefficient positive. Equal sets of points then have equal atoms.
    """

    terms: tuple[tuple[str, int], ...]
    op: Literal["<", "<=", "="]
    constant: Fraction

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in order."""
        return tuple(name for name, _ in self.terms)

    def holds(self, point: Mapping[str, Value]) -> bool:
        """Tell if a point with a number for each variable satisfies the atom."""
        total = sum((coefficient * number(point[name]) for name, coefficient in self.terms), Fraction(0))
        return compare(total, self.op, self.constant)

    def negated(self) -> tuple[Linear, ...]:
        """Disjoint atoms that together hold where this one doesn't."""
        flipped = tuple((name, -coefficient) for name, coefficient in self.terms)
        above = Linear(flipped, "<" if self.op != "<" else "<=", -self.constant)
        return (Linear(self.terms, "<", self.constant), above) if self.op == "=" else (above,)

    def renamed(self, names: Mapping[str, str]) -> Linear:
        """The atom with other names for its variables; names that `names` lacks stay."""
        atom = linear(((names.get(name, name), value) for name, value in self.terms), self.op, self.constant)
        assert isinstance(atom, Linear)  # the new names are distinct, so no term vanishes
        return atom


@dataclass(frozen=True, slots=True)
class Equality:
    """`left = right` or, without `equal`, `left <> right`: of two variables, or a variable and a symbol.

    The values may be of any kind, since `=` and `<>` don't need an order. In normal form, which `equality`
    makes: of two variables `left` is the one whose name comes first.
    """

    left: str
    right: str
    constant: bool
    """True if `right` is a symbol, False if it is the name of a variable."""
    equal: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables, in order."""
        return (self.left,) if self.constant else (self.left, self.right)

    def holds(self, point: Mapping[str, Value]) -> bool:
        """Tell if a point with a value for each variable satisfies the atom."""
        return (point[self.left] == (self.right if self.constant else point[self.right])) is self.equal

    def negated(self) -> tuple[Equality, ...]:
        """The one atom that holds where this one doesn't."""
        return (Equality(self.left, self.right, self.constant, not self.equal),)

    def renamed(self, names: Mapping[str, str]) -> Equality:
        """The atom with other names for its variables, in normal form; names that `names` lacks stay."""
        left = names.get(self.left, self.left)
        if self.constant:
            return Equality(left, self.right, True, self.equal)
        right = names.get(self.right, self.right)
        return Equality(min(left, right), max(left, right), False, self.equal)


Atom: TypeAlias = Linear | Equality


def linear(
    terms: Iterable[tuple[str, Fraction | int]], op: Literal["<", "<=", "="], constant: Fraction | int
) -> Linear | bool:
    """The atom `sum(coefficient * variable) op constant` in normal form; True or False if no variable is
    left.

    >>> linear([("y", Fraction(-1, 2)), ("x", 1), ("z", 0)], "<", 3)
    Linear(terms=(('x', 2), ('y', -1)), op='<', constant=Fraction(6, 1))
    >>> linear([("x", 2), ("x", -2)], "<=", -1)
    False
    """
    sums: dict[str, Fraction] = {}
    for name, coefficient in terms:
        sums[name] = sums.get(name, Fraction(0)) + coefficient
    left = sorted((name, value) for name, value in sums.items() if value)
    if not left:
        return compare(Fraction(0), op, Fraction(constant))
    if len(left) == 1:
        ((name, value),) = left
        sign = 1 if value > 0 or op == "=" else -1
        return Linear(
            ((name, sign),), op, Fraction(constant) if value == sign else constant * (sign / Fraction(value))
        )
    scale = Fraction(
        lcm(*(value.denominator for _, value in left)), gcd(*(value.numerator for _, value in left))
    )
    if op == "=" and left[0][1] < 0:
        scale = -scale
    return Linear(tuple((name, int(value * scale)) for name, value in left), op, constant * scale)


def equality(left: str, right: str, equal: bool) -> Equality | bool:
    """The atom `left = right` or `left <> right` of two variables; True or False if they are the same."""
    return equal if left == right else Equality(min(left, right), max(left, right), False, equal)


def compare(one: Fraction, op: str, other: Fraction) -> bool:
    """Tell if `one op other`."""
    return one < other if op == "<" else one <= other if op == "<=" else one == other


def number(value: Value) -> Fraction:
    """The value of a variable that is a number. Raises `TypeError` for a symbol."""
    if isinstance(value, str):
        raise TypeError(f"{value!r} is a symbol, not a number")
    return value


def relation_text(tuples: Iterable[Sequence[Atom]]) -> str:
    """The disjunction of tuples; FALSE without tuples, TRUE for a tuple without atoms.

    The order of atoms doesn't depend on whether the kinds of variables are known.
    """
    texts = [" AND ".join(map(atom_text, sorted(atoms, key=_place))) or "TRUE" for atoms in tuples]
    if len(texts) < 2:
        return texts[0] if texts else "FALSE"
    return " OR ".join(f"({text})" if " AND " in text else text for text in texts)


def atom_text(atom: Atom) -> str:
    """An atom, such as `x < y`, `x - y <= 3` or `2 * x + y >= 1 / 2`."""
    if isinstance(atom, Equality):
        right = "'" + atom.right.replace("'", "''") + "'" if atom.constant else identifier(atom.right)
        return f"{identifier(atom.left)} {'=' if atom.equal else '<>'} {right}"
    terms, op, constant = atom.terms, str(atom.op), atom.constant
    if terms[0][1] < 0:
        terms, op, constant = tuple((n, -c) for n, c in terms), _FLIPPED[op], -constant
    if not constant and len(terms) == 2 and terms[1][1] < 0:
        (left, a), (right, b) = terms
        return f"{_term(left, a)} {op} {_term(right, -b)}"
    total = _term(*terms[0])
    for name, coefficient in terms[1:]:
        total += f" {'-' if coefficient < 0 else '+'} {_term(name, abs(coefficient))}"
    return f"{total} {op} {number_text(constant)}"


def number_text(value: Fraction) -> str:
    """A number as an integer or a quotient of two."""
    return str(value) if value.denominator == 1 else f"{value.numerator} / {value.denominator}"


def _place(atom: Atom) -> tuple[bool, tuple[str, ...]]:
    """Equalities come first, then by the names of variables."""
    equal = atom.equal if isinstance(atom, Equality) else atom.op == "="
    return not equal, atom.names


def _term(name: str, coefficient: int) -> str:
    return identifier(name) if coefficient == 1 else f"{coefficient} * {identifier(name)}"


def variables(rows: Iterable[Linear]) -> list[str]:
    """The variables of `rows`, in order."""
    return sorted({name for row in rows for name, _ in row.terms})


def coefficient(row: Linear, variable: str) -> int:
    """The coefficient of `variable` in a row; 0 if the row doesn't contain it."""
    return next((value for name, value in row.terms if name == variable), 0)


def combination(parts: Iterable[tuple[Linear, Fraction]]) -> Linear | bool:
    """The sum of rows times factors, a consequence of the rows; its truth value if no variable is left.

    It is strict if one of the rows is strict. Raises ValueError for a negative factor of an inequality.
    """
    terms: list[tuple[str, Fraction]] = []
    constant, op = Fraction(0), _EQUAL
    for row, factor in parts:
        if row.op != "=" and factor < 0:
            raise ValueError(f"negative factor {factor} of an inequality")
        if factor:
            terms += [(name, value * factor) for name, value in row.terms]
            constant += row.constant * factor
            op = row.op if op == "=" or row.op == "<" else op
    return linear(terms, op, constant)


def connected(rows: Iterable[Linear], names: Iterable[str]) -> tuple[Linear, ...]:
    """The rows that contain one of the variables `names`, and all that share variables with these rows."""
    left, reached = list(rows), set(names)
    found: dict[Linear, None] = {}
    while more := [row for row in left if not reached.isdisjoint(row.names)]:
        found |= dict.fromkeys(more)
        reached.update(name for row in more for name in row.names)
        left = [row for row in left if row not in found]
    return tuple(found)


def components(rows: Iterable[Linear]) -> list[tuple[Linear, ...]]:
    """The rows in parts that share no variables, each in the order of `rows`.

    >>> low, high, other = (linear([(name, sign)], "<=", 1) for name, sign in (("x", -1), ("x", 1), ("y", 1)))
    >>> [len(part) for part in components([low, other, high])]
    [2, 1]
    """
    numbered = list(rows)
    part_of: dict[str, int] = {}
    parts: dict[int, tuple[list[int], list[str]]] = {}
    for at, row in enumerate(numbered):
        part: int | None = None
        for name, _ in row.terms:
            known = part_of.get(name)
            if part is None:
                part = at if known is None else known
                places, names = parts.setdefault(part, ([], []))
                places.append(at)
            if known is None:
                names.append(name)
                part_of[name] = part
            elif known != part:
                more_places, more_names = parts.pop(known)
                places += more_places
                names += more_names
                part_of |= dict.fromkeys(more_names, part)
    return [tuple(numbered[at] for at in sorted(places)) for places, _ in parts.values()]


def tightest(rows: Iterable[Linear]) -> tuple[Linear, ...]:
    """The rows without the inequalities that a parallel one among them implies."""
    found: dict[object, Linear] = {}
    for row in rows:
        if row.op == "=":
            found[row] = row
            continue
        other = found.get(row.terms)
        if other is None or (row.constant, row.op == "<=") < (other.constant, other.op == "<="):
            found[row.terms] = row
    return tuple(found.values())


def replaced(row: Linear, values: Mapping[str, Fraction]) -> Linear | bool:
    """The row with numbers for some of its variables."""
    known = sum((value * values[name] for name, value in row.terms if name in values), Fraction(0))
    left = [(name, value) for name, value in row.terms if name not in values]
    return linear(left, row.op, row.constant - known)


_EQUAL: Literal["<", "<=", "="] = "="
