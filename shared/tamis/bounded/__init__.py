"""Which queries over streams without time need bounded memory, and their evaluation within the bound.

| file | idea |
|---|---|
| `closure` | difference bounds over whole numbers |
| `normal_form` | a query as such bounds |
| `minimise` | self-joins with less |
| `extremes` | MAX and MIN as comparisons |
| `keyed` | attributes that are limited by the number of keys |
| `references` | MaxRef and MinRef |
| `decide` | the verdict in polynomial time |
| `ordered` | the verdict by deriving all LTO queries |
| `coordinates`, `bound` | what a tuple asks of others, and how many different things it can ask |
| `evaluate` | synopses, joins, results |
| `witness` | inputs on which every evaluator runs out of memory |

Source: arasu-2004, with offsets, and corrected where `docs/bounded.md` says so. Pure: whole numbers in,
decisions out.
"""
