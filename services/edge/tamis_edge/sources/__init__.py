"""Where readings come from. Every source is an offset log in the end: a partition, the journal, a file."""
