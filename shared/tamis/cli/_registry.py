"""The option that the commands share that talk to the registry."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

DEFAULT_URL = "http://127.0.0.1:8181"

F = TypeVar("F", bound=Callable[..., None])


def registry_option(command: F) -> F:
    """Adds `--registry URL`."""
    return click.option(
        "--registry",
        "url",
        metavar="URL",
        envvar="TAMIS_REGISTRY",
        default=DEFAULT_URL,
        show_default=True,
        help="The registry's address; TAMIS_REGISTRY in the environment.",
    )(command)
