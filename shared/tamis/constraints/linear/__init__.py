"""Linear constraints: lazily evaluated conjunctions of sums, decided by linear programming with exact proofs.

| module | contents |
|---|---|
| `lazy_tuples` | conjunctions with extraneous variables, which are eliminated at output and in differences |
| `conjunctions` | satisfiability with a proof, the range of a variable, implication, redundant rows |
| `fourier_motzkin` | elimination of variables with pruning |
| `integers` | whole numbers: satisfiability by the Omega test, projections as far as they are closed |
| `linear_programs` | linear programs by HiGHS, with answers that are proved in rational numbers |
| `bound_propagation` | ends of variables from row to row, where that is enough |
| `simplex` | the simplex method in rational numbers |
| `rows` | combinations of linear atoms |
"""
