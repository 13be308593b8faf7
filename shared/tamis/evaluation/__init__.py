"""Queries over columns in memory: the temporal join that the joiner and `tamis run` share."""
