"""Relations: unions of constraint tuples over named variables, and their algebra."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from tamis.constraints import tuple_sets
from tamis.constraints.atoms import Value, relation_text
from tamis.constraints.interval_index import IndexedTuples
from tamis.constraints.normal_form import Kind, KindInference, disjunction, numbers, rebuilt, see_all
from tamis.constraints.parse import parse
from tamis.constraints.theories import theory_of
from tamis.constraints.theory import Interval, Theory, hull
from tamis.errors import InputError, RefusedError

# The work for one tuple grows with the third power of its variables.
MOST_VARIABLES = 100


class Relation:
    """A set of points, as a union of constraint tuples (goldin-1997, Definition 12). Immutable.

    Each operation returns the relation whose points are the result of the same operation of relational
    algebra on the points (semantic closure, section 2.3). All answers are exact.

    >>> pairs = Relation.parse("x < y AND y <= 3", ["x", "y"], theory="temporal", numbers="integer")
    >>> pairs.project(["x"]).text()
    'x <= 2'
    """

    __slots__ = ("_indexed", "_kinds", "_theory", "_tuples", "_variables")

    def __init__(
        self,
        variables: Sequence[str],
        theory: Theory[Any],
        tuples: Iterable[Any] = (),
        kinds: Mapping[str, Kind] | None = None,
    ) -> None:
        """A relation of the theory's own tuples over the variables; `parse` makes one of text.

        `kinds` has the kinds of variables as far as they are known: all are numbers if the theory has no
        symbols. Raises `InputError` for too many or equal names.
        """
        self._variables = _distinct(variables)
        self._theory = theory
        self._tuples = tuple(tuples)
        self._kinds = dict(kinds or {}) if theory.symbols else dict.fromkeys(variables, Kind.NUMBER)
        self._indexed = IndexedTuples(theory, self._tuples, numbers(self._kinds))

    @classmethod
    def parse(
        cls, text: str, variables: Sequence[str], theory: str = "dense", numbers: str = "real"
    ) -> Relation:
        """The relation over `variables` of the points at which a SQL condition holds.

        `theory` is dense, temporal, monotone or linear; `numbers` is real or integer. Raises `SqlErrors` for
        mistakes in the text, `InputError` for wrong names, and `RefusedError` for what the theory can't say.
        """
        return cls(variables, theory_of(theory, numbers))._condition(text)[0]

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of the variables, in the order given."""
        return self._variables

    @property
    def theory(self) -> Theory[Any]:
        """The theory of the tuples."""
        return self._theory

    @property
    def tuples(self) -> tuple[Any, ...]:
        """The tuples, in the theory's representation. None is empty."""
        return self._tuples

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds of variables, as far as they are known."""
        return dict(self._kinds)

    def select(self, text: str) -> Relation:
        """The points at which a SQL condition over the variables holds, too. Raises as `parse` does."""
        condition, widened = self._condition(text)
        found = tuple_sets.conjoined(self._theory, widened._indexed, condition._tuples)
        return self._with(found, kinds=condition._kinds)

    def project(self, names: Sequence[str]) -> Relation:
        """The points without the other variables. The result has the variables in the order of `names`.

        Raises `InputError` for unknown and repeated names, and `RefusedError` if the theory can't say the
        result.
        """
        kept = _distinct(names)
        self._check_known(kept)
        kinds = {name: kind for name, kind in self._kinds.items() if name in kept}
        found = tuple_sets.without_subsumed(
            self._theory, (self._theory.project(each, kept) for each in self._tuples), numbers(kinds)
        )
        return Relation(kept, self._theory, found, kinds)

    def join(self, other: Relation) -> Relation:
        """The natural join: points over the variables of both whose parts are in both relations.

        Raises `RefusedError` for different theories, numbers or kinds of a common variable.
        """
        one, two = self._unified(other)
        names = (*self._variables, *(name for name in other._variables if name not in self._variables))
        few, many = sorted((one, two), key=lambda each: len(each._tuples))
        found = tuple_sets.conjoined(self._theory, many._indexed, few._tuples)
        return Relation(names, self._theory, found, {**one._kinds, **two._kinds})

    def union(self, other: Relation) -> Relation:
        """The points of both relations. Raises as `join` does, and `InputError` for different variables."""
        one, two = self._unified(other, same_variables=True)
        tuples = (*one._tuples, *two._tuples)
        return one._with(tuple_sets.without_subsumed(self._theory, tuples, numbers(one._kinds)))

    def difference(self, other: Relation) -> Relation:
        """The points that aren't in the other relation. The parts of one tuple are disjoint; tuples that had
        points in common before still have. Raises as `union` does.
        """
        one, two = self._unified(other, same_variables=True)
        return one._with(tuple_sets.difference(self._theory, one._tuples, two._indexed))

    def rename(self, names: Mapping[str, str]) -> Relation:
        """The relation with other names for some variables; `names` has the new name of each old one.

        All names change at once, so that two may be swapped. Raises `InputError` for unknown names and if two
        variables would have one name.
        """
        self._check_known(names)
        renamed = [names.get(name, name) for name in self._variables]
        kinds = {names.get(name, name): kind for name, kind in self._kinds.items()}
        found = [self._theory.rename(each, names) for each in self._tuples]
        return Relation(_distinct(renamed), self._theory, found, kinds)

    def contains(self, point: Mapping[str, int | Fraction | str]) -> bool:
        """Tell if a point is in the relation. Symbols are strings.

        Raises `InputError` unless the point has exactly one exact value of the right kind for each variable.
        """
        values = self._values(point)
        return values is not None and any(self._theory.contains(each, values) for each in self._tuples)

    def empty(self) -> bool:
        """Tell if there is no point in the relation."""
        return not self._tuples

    def text(self) -> str:
        """The relation as a SQL condition, which `parse` reads as the same relation over the same
        variables. Raises `RefusedError` if the theory can't say a tuple.
        """
        return relation_text([self._theory.atoms(each) for each in self._tuples])

    def implies(self, other: Relation) -> bool:
        """Tell if every point is a point of the other relation, too. Raises as `difference` does."""
        one, two = self._unified(other, same_variables=True)
        return tuple_sets.covered(self._theory, one._tuples, two._indexed)

    def equivalent(self, other: Relation) -> bool:
        """Tell if both relations have the same points. Raises as `difference` does."""
        return self.implies(other) and other.implies(self)

    def disjoint(self) -> Relation:
        """The relation written as tuples of which no two have a point in common.

        Raises `RefusedError` for too many tuples.
        """
        return self._with(tuple_sets.disjoint(self._theory, self._indexed))

    def interval(self, name: str) -> Interval | None:
        """The smallest interval that has all values of a variable; None if the relation is empty. Raises
        `InputError` for an unknown name.
        """
        self._check_known([name])
        return hull(self._theory.interval(each, name) for each in self._tuples)

    def __repr__(self) -> str:
        numbers = f"theory={self._theory.name!r}, numbers={self._theory.numbers.value!r}"
        return f"Relation({list(self._variables)}, {numbers}, {len(self._tuples)} tuples)"

    def _with(self, tuples: Iterable[Any], kinds: Mapping[str, Kind] | None = None) -> Relation:
        return Relation(self._variables, self._theory, tuples, self._kinds if kinds is None else kinds)

    def _with_kinds(self, kinds: Mapping[str, Kind]) -> Relation:
        """The relation with the kinds of more variables; its points stay."""
        if kinds == self._kinds:
            return self
        return self._with(rebuilt(self._theory, self._tuples, kinds), kinds)

    def _condition(self, text: str) -> tuple[Relation, Relation]:
        """The relation of a condition, and this relation with the kinds of variables that follow from it."""
        formula = parse(text, self._variables)
        inference = self._inference()
        see_all(formula, self._theory, inference)
        kinds = inference.kinds(self._variables)
        condition = self._with(disjunction(self._theory, formula, kinds), kinds)
        return condition, self._with_kinds(kinds)

    def _inference(self) -> KindInference:
        inference = KindInference(self._kinds)
        if self._theory.symbols:
            for each in self._tuples:
                inference.see_atoms(self._theory.atoms(each))
        return inference

    def _unified(self, other: Relation, same_variables: bool = False) -> tuple[Relation, Relation]:
        """Both relations, after each takes over what the other one knows of kinds."""
        mine, theirs = self._theory, other._theory
        if mine.name != theirs.name:
            raise RefusedError(
                f"one relation is of theory '{mine.name}' and one of '{theirs.name}'",
                hint="parse both with the larger theory",
            )
        if mine.numbers != theirs.numbers:
            raise RefusedError(
                f"one relation is over {mine.numbers} numbers and one over {theirs.numbers} numbers: "
                "constraints between both aren't closed under projection",
                hint="parse both with the same numbers",
            )
        if same_variables and set(self._variables) != set(other._variables):
            names = sorted(set(self._variables) ^ set(other._variables))
            raise InputError(
                f"the relations have different variables: only one has {', '.join(names)}",
                hint="project or rename first",
            )
        if not mine.symbols:
            return self, other
        inference = self._inference()
        inference.merge(other._kinds)
        for each in other._tuples:
            inference.see_atoms(theirs.atoms(each))
        return (
            self._with_kinds(inference.kinds(self._variables)),
            other._with_kinds(inference.kinds(other._variables)),
        )

    def _check_known(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._variables:
                known = ", ".join(self._variables) or "none"
                raise InputError(f"'{name}' is not a variable of the relation", hint=f"it has: {known}")

    def _values(self, point: Mapping[str, object]) -> dict[str, Value] | None:
        """The exact values of a point; None if one isn't in the domain of the numbers."""
        self._check_known(point)
        values: dict[str, Value] = {}
        for name in self._variables:
            if name not in point:
                raise InputError(f"the point has no value for '{name}'", hint="give one for each variable")
            values[name] = _exact(name, point[name], self._kinds.get(name))
        if self._theory.numbers == "integer":
            for value in values.values():
                if isinstance(value, Fraction) and value.denominator != 1:
                    return None
        return values


def _exact(name: str, value: object, kind: Kind | None) -> Value:
    if isinstance(value, str):
        if kind is Kind.NUMBER:
            raise InputError(f"'{name}' is a number, and {value!r} is not", hint="give an int or a Fraction")
        return value
    if not isinstance(value, int | Fraction) or isinstance(value, bool):
        what, hint = f"the value {value!r} of '{name}' is not exact", "give an int, a Fraction or a str"
        raise InputError(what, hint=hint)
    if kind is Kind.SYMBOL:
        raise InputError(f"'{name}' is a symbol, and {value!r} is not", hint="give a str")
    return Fraction(value)


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise InputError(f"{names!r} is one name", hint="give a list of names")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"the name '{repeated[0]}' is given twice", hint="give each name once")
    for name in names:
        if not name:
            raise InputError(f"{name!r} is not a name", hint="give names of at least one character")
    if len(names) > MOST_VARIABLES:
        raise InputError(f"more than {MOST_VARIABLES} variables", hint="split the relation")
    return tuple(names)
