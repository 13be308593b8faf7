"""Routes that change definitions, or try them.

Begin with `statements`: the way of a text from a request to the plan.
"""
