"""Rounding of computed values: what edges compare, and how much rounding can change an alarm."""
