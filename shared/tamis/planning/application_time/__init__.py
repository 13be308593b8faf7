"""The verdict on queries in application time; `tamis.evaluation.standing` evaluates them.

| file | idea |
|---|---|
| `kind` | which queries these are |
| `ground` | static relations, and what is known of streams |
| `timed` | a query as conjunctions of `tamis.bounded.application_time` |
| `buffer` | what waits for watermarks |
| `words` | what is proved, in words about the user's columns |
| `repairs` | the smallest changes that would bound a query |
| `proof` | examples that were run, and how they grow |
| `answer` | the verdict |
"""

from tamis.planning.application_time.answer import answer, proof_of
from tamis.planning.application_time.kind import decided, open_ended, runs_in_time

__all__ = ["answer", "decided", "open_ended", "proof_of", "runs_in_time"]
