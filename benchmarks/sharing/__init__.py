"""Cost of many queries on one stream."""
