"""Which queries in application time need bounded memory, and their evaluation within the bound.

| file | idea |
|---|---|
| `arrivals` | how the tuples of each occurrence come |
| `parts` | which partial combinations are kept |
| `decide` | the verdict |
| `bound` | how many entries there can be |
| `witness` | inputs on which every evaluator runs out of memory |
| `evaluate` | the synopses of parts, results as time goes on |

Source: schiff-2020, corrected where `docs/bounded.md` says so.
"""
