"""Error of a schema that can't be used."""


class SchemaError(Exception):
    """The reason why a schema can't be used."""
