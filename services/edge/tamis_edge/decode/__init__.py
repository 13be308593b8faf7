"""Decoding: from bytes of sources to checked columns; reports each reading that can't be used."""
