"""ACLs of the services: a table for the docs, commands for kafka-acls.sh, and KafkaUsers of Strimzi.

`python -m deploy.kafka.acls` writes them anew from `tamis.messaging.rights`; a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tamis.messaging.rights import PRINCIPALS, RIGHTS, Right, rights_of

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "security.md"
BEGIN, END = "<!-- rights: python -m deploy.kafka.acls -->\n", "<!-- end of rights -->\n"

_NOTE = "# Written by `python -m deploy.kafka.acls` from shared/tamis/messaging/rights.py.\n"

_SCRIPT_HEAD = f"""\
#!/bin/sh
{_NOTE}#
# Creates the ACLs that Tamis needs. kafka-acls.sh must be on the PATH. Variables:
#   BOOTSTRAP        address of Kafka
#   COMMAND_CONFIG   file with the settings of a client that may create ACLs
#   EDGE, REGISTRY, JOINER, ALERTS, READER, OPERATOR   principals; by default User:edge and so on
# A Kafka source of an edge also needs Read on its topic:
#   SOURCES          topics of Kafka sources, with spaces between them; none by default
# With ACTION=--remove the script removes the ACLs.
set -eu
: "${{BOOTSTRAP:?set BOOTSTRAP to the address of Kafka}}"

acl() {{
  if [ "${{ACTION:---add}}" = --remove ]; then set -- --force "$@"; fi
  if [ -n "${{COMMAND_CONFIG:-}}" ]; then set -- --command-config "$COMMAND_CONFIG" "$@"; fi
  kafka-acls.sh --bootstrap-server "$BOOTSTRAP" "${{ACTION:---add}}" "$@"
}}
"""


def table() -> str:
    """The rights as a table of Markdown, one row each."""
    rows = ["| principal | right | on | needed for |", "|---|---|---|---|"]
    for right in RIGHTS:
        name = f"`{right.name}`…" if right.prefixed else f"`{right.name}`"
        why = f"{right.why} (only for {right.only_for})" if right.only_for else right.why
        rows.append(f"| {right.principal} | {right.operation} | {right.resource} {name} | {why} |")
    return "\n".join(rows) + "\n"


def script() -> str:
    """Commands for kafka-acls.sh."""
    lines = [_SCRIPT_HEAD]
    for principal in PRINCIPALS:
        variable = principal.upper()
        lines.append(f'\n{variable}="${{{variable}:-User:{principal}}}"\n')
        for (resource, name, prefixed), rights in _by_resource(principal):
            operations = " ".join(f"--operation {right.operation}" for right in rights)
            pattern = "prefixed" if prefixed else "literal"
            option = {"topic": "--topic", "group": "--group"}.get(resource, "--transactional-id")
            where = f"{option} {name} --resource-pattern-type {pattern}"
            lines.append(f'acl --allow-principal "${variable}" {operations} {where}\n')
        if principal == "edge":
            read = 'acl --allow-principal "$EDGE" --operation Read --topic "$topic"'
            lines += [
                "for topic in ${SOURCES:-}; do\n",
                f"  {read} --resource-pattern-type literal\n",
                "done\n",
            ]
    return "".join(lines)


def acls() -> str:
    """The rights by principal, in the form of the ACLs of Strimzi's KafkaUser."""
    lines = [_NOTE, "# For each principal: the ACLs in the form of Strimzi's KafkaUser.\n"]
    for principal in PRINCIPALS:
        lines.append(f"{principal}:\n")
        lines += [f"  - {acl}\n" for acl in _strimzi(principal)]
    return "".join(lines)


def users() -> str:
    """KafkaUsers of Strimzi."""
    lines = [_NOTE, "# The label strimzi.io/cluster must have the name of your Kafka cluster.\n"]
    for principal in PRINCIPALS:
        lines.append(
            "---\n"
            "apiVersion: kafka.strimzi.io/v1beta2\n"
            "kind: KafkaUser\n"
            "metadata:\n"
            f"  name: {principal}\n"
            "  labels: {strimzi.io/cluster: kafka}\n"
            "spec:\n"
            "  authentication: {type: scram-sha-512}\n"
            "  authorization:\n"
            "    type: simple\n"
            "    acls:\n"
        )
        lines += [f"      - {acl}\n" for acl in _strimzi(principal)]
    return "".join(lines)


def _strimzi(principal: str) -> Iterator[str]:
    for (resource, name, prefixed), rights in _by_resource(principal):
        kind = "transactionalId" if resource == "transactional id" else resource
        pattern = "prefix" if prefixed else "literal"
        operations = ", ".join(right.operation for right in rights)
        where = f"{{type: {kind}, name: {name}, patternType: {pattern}}}"
        yield f"{{resource: {where}, operations: [{operations}]}}"


def _by_resource(principal: str) -> Iterator[tuple[tuple[str, str, bool], list[Right]]]:
    def resource(right: Right) -> tuple[str, str, bool]:
        return right.resource, right.name, right.prefixed

    for key, rights in groupby(sorted(rights_of(principal), key=resource), resource):
        yield key, list(rights)


def page() -> str:
    """docs/security.md with the table in its place."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{table()}{END}{after}"


FILES = {
    HERE / "acls.yaml": acls,
    HERE / "create-acls.sh": script,
    HERE / "kafka-users.yaml": users,
    PAGE: page,
}

if __name__ == "__main__":
    for file, content in FILES.items():
        file.write_text(content(), encoding="utf-8")
    (HERE / "create-acls.sh").chmod(0o755)
