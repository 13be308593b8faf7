"""Options and arguments that several commands share: choices, the registry, and names that it has."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote

import click

from tamis.wording.names import suggest

if TYPE_CHECKING:
    from tamis.web.registry_client import RegistryClient

DEFAULT_URL = "http://127.0.0.1:8181"

F = TypeVar("F", bound=Callable[..., None])

# A shell waits for the completion, so a registry that is slow or away costs no more than this.
SECONDS = 1.0

Completion = Callable[[click.Context, click.Parameter, str], list[str]]


class Choice(click.Choice[str]):
    """One of a few texts, as click's own choice."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """The message about an unknown value.

        >>> Choice(["streams", "alerts"]).get_invalid_choice_message("alrts", None)
        "'alrts' is not one of 'streams', 'alerts'; did you mean 'alerts'?"
        >>> Choice(["streams", "alerts"]).get_invalid_choice_message("x", None)
        "'x' is not one of 'streams', 'alerts'"
        """
        message = super().get_invalid_choice_message(value, ctx).removesuffix(".")
        hint = suggest(str(value), [str(choice) for choice in self.choices], "")
        return f"{message}; {hint}" if hint else message


def registry_option(command: F) -> F:
    """Add `--registry URL`; the command gets a client, as `registry`."""

    def client(context: click.Context, parameter: click.Parameter, url: str) -> RegistryClient:
        from tamis.settings.client import registry_client

        return registry_client(url)

    return click.option(
        "--registry",
        "registry",
        metavar="URL",
        callback=client,
        envvar="TAMIS_REGISTRY",
        default=DEFAULT_URL,
        show_default=True,
        help="The address of the registry. The environment variable TAMIS_REGISTRY sets it, too. TAMIS_TOKEN "
        "or TAMIS_TOKEN_FILE has the token, and TAMIS_CA the file of the authority that signed its "
        "certificate.",
    )(command)


def names_of(kind: str) -> Completion:
    """The completion of a parameter that has the name of an alert, a stream, a pattern or an edge: the names
    of this `kind` that begin with the text, none if the registry doesn't answer.
    """
    return lambda context, _, begun: _known(context, kind, begun)


def names_by(parameter: str) -> Completion:
    """The completion of a parameter that has the name of an object, whose kind, in singular or plural, is the
    value of another `parameter`: the names of this kind that begin with the text, none if the registry
    doesn't answer.
    """
    return lambda context, _, begun: _known(context, str(context.params.get(parameter) or ""), begun)


def _known(context: click.Context, kind: str, begun: str) -> list[str]:
    from tamis.errors import TamisError
    from tamis.settings.client import registry_client
    from tamis.web.registry_client import RegistryClient

    kind = kind.removesuffix("s")
    if kind not in ("alert", "stream", "pattern", "edge", "shard"):
        return []  # the registry lists no functions and tables
    try:
        given = context.params.get("registry")
        if not isinstance(given, RegistryClient):  # the command has no such option
            given = registry_client(os.environ.get("TAMIS_REGISTRY") or DEFAULT_URL)
        listed = "edge" if kind == "shard" else kind
        rows: Iterable[dict[str, Any]] = given.request("GET", f"/v1/{quote(listed)}s", seconds=SECONDS)
    except TamisError:
        return []  # a message would be printed into the line that the user is typing
    if kind == "shard":
        names = [shard["shard"] for edge in rows for shard in edge["shards"]]
    else:
        names = [row["name"] for row in rows]
    return [name for name in names if name.startswith(begun)]
