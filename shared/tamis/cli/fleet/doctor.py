"""`tamis doctor`: check this machine and a fleet."""

from __future__ import annotations

from contextlib import closing

import click
from click.core import ParameterSource

from tamis.cli.common.options import Choice, registry_option
from tamis.cli.common.output import write, write_json
from tamis.printable import printable
from tamis.web.registry_client import RegistryClient


@click.command(
    epilog="""\b
Examples:
  tamis doctor
  tamis doctor --bootstrap broker:9092 --registry https://registry:8181
  tamis doctor --format json | jq '.checks[] | select(.state != "ok")'
"""
)
@click.option(
    "--bootstrap",
    envvar="TAMIS_KAFKA_BOOTSTRAP",
    metavar="HOST:PORT",
    help="The address of Kafka; by default TAMIS_KAFKA_BOOTSTRAP or 127.0.0.1:9092.",
)
@click.option(
    "--format", "form", type=Choice(["text", "json"]), default="text", show_default=True, help="Output."
)
@registry_option
@click.pass_context
def command(context: click.Context, bootstrap: str | None, form: str, registry: RegistryClient) -> None:
    """Check this machine, Kafka, the registry, plan and readings of the edges, the joiner and the sinks.

    Each check is ok, a warning, failed, or unchecked, with what to do. Without a fleet at the default
    addresses, its checks are unchecked. The exit code is 1 if a check failed.
    """
    from tamis.doctor.places import Places
    from tamis.doctor.table import findings
    from tamis.settings import KafkaSettings, load

    settings = load(KafkaSettings)
    if bootstrap:
        settings = settings.model_copy(update={"bootstrap": bootstrap})
    named = context.get_parameter_source("registry") is not ParameterSource.DEFAULT
    places = Places(settings, registry, kafka_named=bool(bootstrap), registry_named=named)
    found = []
    with closing(places):
        for name, finding in findings(places):
            found.append(
                {"check": name, "state": finding.state, "found": finding.found, "todo": finding.todo}
            )
            if form == "text":
                write(f"{finding.state:<9}  {name:<8}  {printable(finding.found)}")
                if finding.todo:
                    write(f"{'':<21}{printable(finding.todo)}")
    if form == "json":
        write_json({"checks": found})
    if any(one["state"] == "failed" for one in found):
        raise SystemExit(1)
