"""`tamis redeliver`: send undelivered notifications again."""

from __future__ import annotations

from pathlib import Path

import click

from tamis.cli.common.output import say, write


@click.command(
    epilog="""\b
Examples:
  tamis redeliver --config alerts.yaml --dry-run    shows what would be sent
  tamis redeliver --config alerts.yaml              to every sink
  tamis redeliver --config alerts.yaml pager        to the sink called pager
"""
)
@click.argument("sinks", nargs=-1, metavar="[SINK]...")
@click.option(
    "--config",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The YAML file with the sinks, the same as of `tamis alerts`.",
)
@click.option("--dry-run", is_flag=True, help="Show the notifications without sending them.")
def command(sinks: tuple[str, ...], config: Path, dry_run: bool) -> None:
    """Send again the notifications that a sink did not accept, from the dead letters.

    They are sent in their old order, each with the same `Idempotency-Key` as before. An opening is left out
    if its episode has closed, unless the close is sent again, too. If a sink still doesn't accept one, the
    exit code is 1, and the next call sends the rest.
    """
    from tamis.errors import InputError
    from tamis.settings import KafkaSettings, load
    from tamis.wording.names import suggest
    from tamis_alerts.settings import load_config
    from tamis_alerts.sinks.redelivery import Redelivery

    settings = load_config(config)
    known = {sink.name: sink for sink in settings.sinks}
    for name in sinks:
        if name not in known:
            raise InputError(
                f"there is no sink {name!r}",
                where=str(config),
                hint=suggest(name, known, f"there are: {', '.join(known) or 'none'}"),
            )
    kafka, faults = load(KafkaSettings), 0
    for name in sinks or tuple(known):
        outcome = Redelivery(known[name], kafka, settings.console_address).run(
            dry_run=dry_run, say=click.echo
        )
        done = f"{outcome.sent} {'to send' if dry_run else 'sent'} again"
        left_out = f", {outcome.left_out} left out: their episodes have closed" if outcome.left_out else ""
        write(f"{name}: {done}{left_out}")
        if outcome.fault:
            say(outcome.fault)
            faults += 1
    if faults:
        raise SystemExit(1)
