"""Tamis: threshold alerts over joined sensor streams with provably bounded memory."""
