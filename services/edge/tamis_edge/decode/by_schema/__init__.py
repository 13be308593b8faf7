"""Readings with a schema, Avro or Protobuf, to columns of Python values.

`rows` sorts the readings of a micro-batch by their schemas. `avro` and `protobuf` compile a schema for the
columns of a stream; each reading is read by the schema that it was written with, so that schemas may change
from reading to reading. `logical_types` converts times and decimals. fastavro and protobuf are imported only
by an edge whose sources need them.
"""
