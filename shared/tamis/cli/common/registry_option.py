"""Option `--registry` of commands that use the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from tamis.settings.client import registry_client

DEFAULT_URL = "http://127.0.0.1:8181"

F = TypeVar("F", bound=Callable[..., None])


def registry_option(command: F) -> F:
    """Add `--registry URL`; the command gets a client, as `registry`."""
    return click.option(
        "--registry",
        "registry",
        metavar="URL",
        callback=lambda _, __, url: registry_client(url),
        envvar="TAMIS_REGISTRY",
        default=DEFAULT_URL,
        show_default=True,
        help="The address of the registry. The environment variable TAMIS_REGISTRY sets it, too. TAMIS_TOKEN "
        "or TAMIS_TOKEN_FILE has the token, and TAMIS_CA the file of the authority that signed its "
        "certificate.",
    )(command)
