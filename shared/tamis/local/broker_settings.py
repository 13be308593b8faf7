"""Settings files of the embedded Kafka broker: one node, KRaft, loopback only."""

from __future__ import annotations

import base64
import struct
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

HOST = "127.0.0.1"

# Settings of a single node where Kafka's defaults are made for a cluster. The tests' container has them too.
SINGLE_NODE_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "inter.broker.listener.name": "BROKER",
    "listener.security.protocol.map": "BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # 50 partitions of each would cost one node a second at every start.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # A broker that was killed comes back only when its last session has ended, by default after 9 s.
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "500",
    # A consumer group needs no time for further members to join.
    "group.initial.rebalance.delay.ms": "0",
    # The registry makes the topics, all with the same number of partitions.
    "auto.create.topics.enable": "false",
}

# Without this file Kafka logs errors only. Each start begins a new log, and the size of all is limited.
_LOG4J = """\
status = error
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {directory}/broker.log
appender.file.filePattern = {directory}/broker.%i.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n
appender.file.policies.type = Policies
appender.file.policies.start.type = OnStartupTriggeringPolicy
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 10MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 5
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


@dataclass(frozen=True)
class Listener:
    """A further port of the broker, besides the plain one that every client may use.

    `advertised` is the port that the broker tells clients to connect to, where it isn't `port`: the port of
    a proxy in front of the broker. `settings` are Kafka's settings of this listener, without their prefix.
    `host` is its address, on loopback as all others.
    """

    name: str
    port: int
    protocol: str = "PLAINTEXT"
    advertised: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    host: str = HOST


def write_settings(
    directory: Path,
    port: int,
    controller_port: int,
    listeners: Sequence[Listener],
    security: Mapping[str, str] | None = None,
) -> Path:
    """Write the files of settings into `directory`; returns the path of the broker's. With `security`, the
    broker's settings of TLS and ACLs, all ports have TLS.
    """
    log4j = _LOG4J.format(directory=directory)
    (directory / "log4j2.properties").write_text(log4j, encoding="utf-8")
    settings = {
        **SINGLE_NODE_SETTINGS,
        "listeners": f"BROKER://{HOST}:{port},CONTROLLER://{HOST}:{controller_port}",
        "advertised.listeners": f"BROKER://{HOST}:{port}",
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "log.dirs": str(directory / "data"),
    }
    if security:
        settings |= {"listener.security.protocol.map": "BROKER:SSL,CONTROLLER:SSL", **security}
    for listener in listeners:
        name, advertised = listener.name, listener.advertised or listener.port
        settings["listeners"] += f",{name}://{listener.host}:{listener.port}"
        settings["advertised.listeners"] += f",{name}://{listener.host}:{advertised}"
        settings["listener.security.protocol.map"] += f",{name}:{listener.protocol}"
        prefix = f"listener.name.{name.lower()}."
        settings.update({prefix + key: value for key, value in listener.settings.items()})
    path = directory / "server.properties"
    path.touch(0o600)  # it may have passwords
    path.write_text(
        "".join(f"{key}={_escaped(value)}\n" for key, value in settings.items()), encoding="ascii"
    )
    return path


def _escaped(value: str) -> str:
    """A value as Java's properties files write it.

    >>> print(_escaped('a"\\\\é'))
    a"\\\\\\u00e9
    """
    units = struct.iter_unpack(">H", value.replace("\\", "\\\\").encode("utf-16-be"))
    return "".join(chr(unit) if 0x20 <= unit < 0x7F else f"\\u{unit:04x}" for (unit,) in units)


def new_cluster_id() -> str:
    """A random UUID in Kafka's notation. A leading hyphen would be read as an option, so none has one."""
    while (made := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return made
