#!/bin/sh
# Written by `python -m deploy.kafka.acls` from shared/tamis/messaging/rights.py.
#
# Creates the ACLs that Tamis needs. kafka-acls.sh must be on the PATH. Variables:
#   BOOTSTRAP        address of Kafka
#   COMMAND_CONFIG   file with the settings of a client that may create ACLs
#   EDGE, REGISTRY, JOINER, ALERTS, READER, OPERATOR   principals; by default User:edge and so on
# A Kafka source of an edge also needs Read on its topic:
#   SOURCES          topics of Kafka sources, with spaces between them; none by default
# With ACTION=--remove the script removes the ACLs.
set -eu
: "${BOOTSTRAP:?set BOOTSTRAP to the address of Kafka}"

acl() {
  if [ "${ACTION:---add}" = --remove ]; then set -- --force "$@"; fi
  if [ -n "${COMMAND_CONFIG:-}" ]; then set -- --command-config "$COMMAND_CONFIG" "$@"; fi
  kafka-acls.sh --bootstrap-server "$BOOTSTRAP" "${ACTION:---add}" "$@"
}

EDGE="${EDGE:-User:edge}"
acl --allow-principal "$EDGE" --operation Read --group tamis-edge. --resource-pattern-type prefixed
acl --allow-principal "$EDGE" --operation Describe --group tamis-reader --resource-pattern-type literal
acl --allow-principal "$EDGE" --operation Write --topic tamis.acks --resource-pattern-type literal
acl --allow-principal "$EDGE" --operation Write --topic tamis.dead-letters --resource-pattern-type literal
acl --allow-principal "$EDGE" --operation Read --topic tamis.plan-parts. --resource-pattern-type prefixed
acl --allow-principal "$EDGE" --operation Read --topic tamis.plans --resource-pattern-type literal
acl --allow-principal "$EDGE" --operation Write --topic tamis.sketches --resource-pattern-type literal
acl --allow-principal "$EDGE" --operation Write --topic tamis.stream. --resource-pattern-type prefixed
for topic in ${SOURCES:-}; do
  acl --allow-principal "$EDGE" --operation Read --topic "$topic" --resource-pattern-type literal
done

REGISTRY="${REGISTRY:-User:registry}"
acl --allow-principal "$REGISTRY" --operation Describe --group tamis-reader --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Create --operation Describe --topic tamis. --resource-pattern-type prefixed
acl --allow-principal "$REGISTRY" --operation Read --topic tamis.acks --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Read --topic tamis.alarms --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Read --topic tamis.dead-letters --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Read --topic tamis.episodes --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Read --topic tamis.frontiers --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Read --topic tamis.heartbeats --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Write --topic tamis.plan-parts. --resource-pattern-type prefixed
acl --allow-principal "$REGISTRY" --operation Read --operation Write --topic tamis.plans --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Read --operation Write --topic tamis.silences --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Read --topic tamis.sketches --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Read --operation Write --topic tamis.statements --resource-pattern-type literal
acl --allow-principal "$REGISTRY" --operation Write --operation Read --topic tamis.stream. --resource-pattern-type prefixed
acl --allow-principal "$REGISTRY" --operation Write --transactional-id tamis-registry --resource-pattern-type literal

JOINER="${JOINER:-User:joiner}"
acl --allow-principal "$JOINER" --operation Describe --group tamis-reader --resource-pattern-type literal
acl --allow-principal "$JOINER" --operation Write --topic tamis.alarms --resource-pattern-type literal
acl --allow-principal "$JOINER" --operation Write --topic tamis.dead-letters --resource-pattern-type literal
acl --allow-principal "$JOINER" --operation Read --operation Write --topic tamis.frontiers --resource-pattern-type literal
acl --allow-principal "$JOINER" --operation Write --topic tamis.heartbeats --resource-pattern-type literal
acl --allow-principal "$JOINER" --operation Read --topic tamis.plans --resource-pattern-type literal
acl --allow-principal "$JOINER" --operation Read --topic tamis.stream. --resource-pattern-type prefixed

ALERTS="${ALERTS:-User:alerts}"
acl --allow-principal "$ALERTS" --operation Read --group tamis-alerts --resource-pattern-type prefixed
acl --allow-principal "$ALERTS" --operation Describe --group tamis-reader --resource-pattern-type literal
acl --allow-principal "$ALERTS" --operation Create --operation Read --operation Write --topic tamis-alerts-episodes-changelog --resource-pattern-type literal
acl --allow-principal "$ALERTS" --operation Read --topic tamis.alarms --resource-pattern-type literal
acl --allow-principal "$ALERTS" --operation Write --topic tamis.dead-letters --resource-pattern-type literal
acl --allow-principal "$ALERTS" --operation Read --operation Write --topic tamis.episodes --resource-pattern-type literal
acl --allow-principal "$ALERTS" --operation Read --topic tamis.frontiers --resource-pattern-type literal
acl --allow-principal "$ALERTS" --operation Write --topic tamis.heartbeats --resource-pattern-type literal
acl --allow-principal "$ALERTS" --operation Read --topic tamis.plans --resource-pattern-type literal
acl --allow-principal "$ALERTS" --operation Read --operation Write --topic tamis.silences --resource-pattern-type literal

READER="${READER:-User:reader}"
acl --allow-principal "$READER" --operation Describe --group tamis-reader --resource-pattern-type literal
acl --allow-principal "$READER" --operation Read --topic tamis.alarms --resource-pattern-type literal
acl --allow-principal "$READER" --operation Read --topic tamis.episodes --resource-pattern-type literal
acl --allow-principal "$READER" --operation Read --topic tamis.plans --resource-pattern-type literal
acl --allow-principal "$READER" --operation Read --topic tamis.silences --resource-pattern-type literal
acl --allow-principal "$READER" --operation Read --topic tamis.statements --resource-pattern-type literal

OPERATOR="${OPERATOR:-User:operator}"
acl --allow-principal "$OPERATOR" --operation Read --operation Delete --group tamis- --resource-pattern-type prefixed
acl --allow-principal "$OPERATOR" --operation Read --operation Delete --operation AlterConfigs --topic tamis --resource-pattern-type prefixed
