"""Memory of queries: the verdict bounded, unbounded or unknown, the bound, the proof and the repairs.

`conjunctive` is the theory about conjunctions of difference bounds (arasu-2004, with offsets). `timeless`
applies it to SQL over streams without time, and `application_time` extends it to event time (schiff-2020).
`windows` bounds the aggregates of windows. `synopses` and `application_time.synopses` keep what the proofs
say must be kept; `tamis.evaluation` runs them. `memory` is the verdict that all kinds of queries share.
`docs/bounded.md` says where the papers are corrected. Nothing here does I/O, except reading the files of
static relations.
"""
