"""Memory of queries in application time, where tuples come in order of event time (schiff-2020).

`arrivals` says how tuples come, and `parts` which partial combinations must be kept until later tuples
arrive. `decide` gives the verdict on them, `bound` counts them, and `witness` makes inputs that prove a query
unbounded. `synopses` keeps the parts and joins new tuples with them. `docs/bounded.md` says where the paper
is corrected.
"""
