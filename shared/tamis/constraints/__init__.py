"""Constraint tuples and their algebra: exact sets of points of linear constraints (goldin-1997).

`Relation` is a union of constraint tuples over named variables. Its operations (select, project, join, union,
difference, rename) are those of relational algebra on the points, of which there may be infinitely many. A
*theory* says which constraints a relation may have, and represents its tuples.

| module | contents |
|---|---|
| `relation` | `Relation`, the algebra of relations of any theory |
| `atoms` | linear comparisons with exact coefficients, equalities of symbols, their negation and their text |
| `theory` | the interface that each theory implements, intervals |
| `theories` | the theories, by name |
| `parse`, `formula` | SQL conditions as formulas, before the kinds of variables are known |
| `normal_form` | the kinds of variables, numbers or symbols; formulas as tuples: disjunctive normal form |
| `tuple_sets` | conjunction and difference of sets of tuples, removal of contained tuples |
| `interval_index` | tuples found by the interval of one variable |
| `linear` | the theory linear: lazy projections, linear programs with exact proofs |
| `expressions`, `join_sizes` | algebraic expressions and their rewriting, with estimated sizes of joins |

A new theory is a class with the methods of `theory.Theory`, listed in `theories.THEORIES`. Relations find out
all else: parsing, normal form, difference by negated atoms, kinds, names and errors are common to all.
"""

from tamis.constraints.relation import Relation

__all__ = ["Relation"]
