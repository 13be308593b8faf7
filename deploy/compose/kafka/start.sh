#!/bin/sh
# Formats the storage of a new broker, and starts it. KAFKA_PROPERTIES names another file of settings in this folder.
set -eu
properties=/etc/tamis/kafka/${KAFKA_PROPERTIES:-server.properties}
/opt/kafka/bin/kafka-storage.sh format --ignore-formatted --cluster-id "$CLUSTER_ID" --config "$properties"
exec /opt/kafka/bin/kafka-server-start.sh "$properties"
