"""Decoding: from bytes of sources to checked columns; reports each reading that can't be used.

Begin with `decoder`. It gets its columns from `json_payloads`, or from `schema_rows` for readings in `avro`
or `protobuf`, whose values `logical_types` converts.
"""
