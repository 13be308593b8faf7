"""What it costs to serve many queries on one stream together."""
