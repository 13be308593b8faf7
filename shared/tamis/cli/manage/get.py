"""`tamis get`: the state of definitions, plans, edges, joiner, sinks and episodes, silences, dead letters."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode

import click

from tamis.cli.common.options import Choice, names_by, registry_option
from tamis.cli.common.output import say, write, write_json
from tamis.cli.common.state_tables import HEADINGS, NAMELESS, state_notes, state_rows
from tamis.cli.common.tables import show_notes, show_table
from tamis.errors import InputError
from tamis.messaging.dead_letters import Reason
from tamis.web.registry_client import RegistryClient

REASONS = Choice([reason.value for reason in Reason])


@click.command(
    epilog="""\b
Examples:
  tamis get
  tamis get alerts condensation --json
  tamis get alerts condensation --plan
  tamis get edges
  tamis get joiner
  tamis get episodes
  tamis get dead-letters --reason out_of_domain --limit 5
"""
)
# Without the metavar, the usage is the list of all words, which click breaks within a word.
@click.argument("what", metavar="[WHAT]", type=Choice(list(HEADINGS)), default="alerts")
@click.argument("name", required=False, shell_complete=names_by("what"))
@click.option(
    "--limit", type=click.IntRange(1, 500), help="The greatest number of dead letters, 50 by default."
)
@click.option("--reason", metavar="REASON", help="Show only dead letters with this reason.", type=REASONS)
@click.option("--plan", is_flag=True, help="Show the physical plan of an alert.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer of the registry as JSON.")
@registry_option
def command(
    what: str,
    name: str | None,
    limit: int | None,
    reason: str | None,
    plan: bool,
    as_json: bool,
    registry: RegistryClient,
) -> None:
    """Show alerts (the default), or other parts of the fleet's state.

    WHAT is one of alerts, streams, patterns, plans, edges, joiner (and what it waits for), sinks, episodes
    (the open ones), silences, acknowledgements and dead-letters (the newest ones, with the reasons).
    """
    asked = {name: value for name, value in (("limit", limit), ("reason", reason)) if value is not None}
    if asked and what != "dead-letters":
        hint = "run: tamis get dead-letters"
        raise InputError("only dead letters have a limit and reasons", where=f"--{min(asked)}", hint=hint)
    if name is not None and what in NAMELESS:
        raise InputError(f"`tamis get {what}` takes no name", where=name, hint=f"run: tamis get {what}")
    path = f"/v1/{what}" if name is None else f"/v1/{what}/{quote(name, safe='')}"
    if plan:
        if what != "alerts" or name is None:
            raise InputError(
                "only an alert has a plan", where="--plan", hint="run: tamis get alerts NAME --plan"
            )
        path += "/plan"
    answer = registry.request("GET", f"{path}?{urlencode(asked)}" if asked else path)
    if as_json or (what == "plans" and name is not None):
        write_json(answer)
        return
    if plan:
        _show_plan(answer)
        return
    if what == "episodes":
        _show(what, answer["episodes"], "open episodes")
        if not answer["complete"]:
            say(f"only the newest {answer['read']} events of episodes were looked through; there may be more")
    elif what == "dead-letters":
        _show(what, answer["records"], "dead letters with this reason" if reason else "dead letters")
        if answer["unreadable"]:
            say(f"{answer['unreadable']} dead letters could not be decoded")
        if not answer["complete"]:
            say(f"these are the newest ones of the {answer['read']} that were looked at; there may be more")
    else:
        _show(what, answer if isinstance(answer, list) else [answer], what)


def _show_plan(answer: dict[str, Any]) -> None:
    # Planning takes a second to import, which the other answers do without.
    from tamis.planning.plan_trees.operators import QueryPlan
    from tamis.planning.plan_trees.text import plan_text

    write(plan_text(QueryPlan.of(answer)))


def _show(what: str, entries: list[dict[str, Any]], named: str) -> None:
    """Print a table. `named`: what there is none of if it is empty."""
    rows = [row for entry in entries for row in state_rows(what, entry)]
    show_table(HEADINGS[what], rows)
    show_notes([note for entry in entries for note in state_notes(what, entry)])
    if not rows:
        say(f"there are no {named}")
