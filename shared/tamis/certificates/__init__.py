"""Proofs about functions: they decide which tuples bracket omission may drop (cai-2021, sections 3 to 5).

Omission drops a tuple if earlier and later tuples *bracket* it: one has a greater value, another a smaller
one. This is only safe if the condition of the alert has a certain form in that value. A *certificate* is the
proof of this form for one source of a query.

- `certify`: makes the certificate. It proves that the values of one scalar of the source which raise no alarm
  form an interval.
- `scalars`: finds this scalar in the conditions, for example `dew_point(a.temp, a.rh)`.
- `curvature`: rules of composition, which say whether a function rises, falls or is quasiconvex, and where a
  condition on it is true.
- `interval_arithmetic`: proofs over the declared domains, for functions for which the rules prove too little.
- `nulls`: the effect of NULL on a condition.
- `comparison_order` and `margins`: choose the value that edges compare. The proof is about exact numbers, but
  edges compute with rounding.
- `grid`: the heuristic of the paper, which an alert can ask for instead of a proof.
"""
