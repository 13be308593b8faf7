"""The fleet on one machine: Java, jars, the embedded Kafka broker and the processes of the services."""
