"""Memory of conjunctive queries without time: verdict, bound and witness (arasu-2004, with offsets).

`normal_form` states a query as difference bounds over whole numbers, and `difference_bounds` closes them.
`decide` gives the verdict in polynomial time; tests compare it with the verdict by definition. `bound` counts
 the entries that synopses can have, by the `bucket_coordinates` of tuples. `witness` makes inputs for
which every evaluator needs unlimited memory.
"""
