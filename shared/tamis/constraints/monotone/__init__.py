"""Monotone constraints of two variables: networks, elimination and canonical form (goldin-1997, chapter 5).

| module | contents |
|---|---|
| `lines` | clusters of constraints between two variables: domains, ranges and composition |
| `network` | networks of bounds and clusters: elimination of variables, global consistency, redundance |
| `integers` | elimination and satisfiability where the variables are integers |
"""
