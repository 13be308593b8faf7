"""The verdict on queries over streams without time; `tamis.evaluation.standing.timeless` evaluates them.

| file | idea |
|---|---|
| `places` | DOUBLEs as whole numbers |
| `differences` | a condition as difference bounds |
| `declared` | what types and CHECK say |
| `dense` | DOUBLE by intervals |
| `alternatives` | a condition with OR as several conjunctions |
| `translate` | a query as conjunctions of `tamis.bounded` |
| `words` | what is proved, in words about the user's columns |
| `proof` | why a query is unbounded, as inputs |
| `repairs` | the smallest changes that would bound a query |
| `grouped` | a query with aggregates as queries without |
| `having` | what HAVING leaves of it |
| `unions` | a UNION of which a SELECT isn't bounded |
| `answer` | the verdict |
"""

from tamis.planning.timeless.answer import answer, proof_of

__all__ = ["answer", "proof_of"]
