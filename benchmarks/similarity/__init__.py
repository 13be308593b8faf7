"""Watching series for patterns by similarity, beside libraries that compute all distances."""
