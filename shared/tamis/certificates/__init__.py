"""Proofs about functions: they decide which tuples bracket omission may drop (cai-2021, sections 3 to 5).

`certify` proves, for one source of a query, that the values of one scalar which raise no alarm form an
interval. `scalars` finds that scalar in the conditions. `curvature` derives by rules of composition whether a
function rises, falls or is quasiconvex, and what follows for the set where a condition holds. Where the rules
prove too little, `interval_arithmetic` proves it over the declared domains. `rounding` chooses
what edges compare so that the proof, which is about exact numbers, also holds for computed ones. `grid` is
the heuristic of the paper, which an alert can ask for instead of a proof.
"""
