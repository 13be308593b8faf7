"""Linear constraints: conjunctions of sums, decided by linear programming with exact proofs.

| module | contents |
|---|---|
| `conditions` | conditions of SQL as constraints that also hold for rounded arithmetic |
| `conjunctions` | satisfiability with a proof, the range of a variable, implication, redundant rows |
| `fourier_motzkin` | elimination of variables with pruning |
| `integers` | whole numbers: satisfiability by the Omega test, projections as far as they are closed |
| `linear_programs` | ends of variables, from row to row or by HiGHS, proved in rational numbers |
| `simplex` | the simplex method in rational numbers |
"""
