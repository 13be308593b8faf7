"""SQL text of atoms, tuples and relations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from tamis.constraints.atoms import Atom, Equality
from tamis.expressions.sql_text import identifier

_FLIPPED = {"<": ">", "<=": ">=", "=": "="}


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
