"""Values with schemas: Avro and Protobuf in the wire format of Confluent's Schema Registry.

`wire_format` has the header in front of such a value. `registry` fetches and registers schemas over HTTP with
confluent-kafka's client, which is imported only when a stream or a source uses a schema registry.
"""
