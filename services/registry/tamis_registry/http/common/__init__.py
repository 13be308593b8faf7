"""Parts that all routes share: parameters, errors, rights, and turns of requests that read topics.

Begin with `parts`, which most routes use, and with `problems`, the form of every error.
"""
