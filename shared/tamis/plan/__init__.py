"""The plan: the contract between registry, edges, joiner and alerts, as data, as JSON, and as text.

Begin with `model`, the plan as data. `json_form` writes and reads it by the types of `wire`; `parts` cuts
out what an edge needs.
"""
