"""From the bytes that sources hand over to checked columns; what can't be used is named, row by row."""
