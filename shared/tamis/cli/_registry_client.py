"""What the commands share that talk to the registry: its address, requests, and its problems as errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import httpx

from tamis.errors import InputError, RefusedError, TamisError, UnavailableError

DEFAULT_URL = "http://127.0.0.1:8181"
REQUEST_SECONDS = 40.0

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


def request(method: str, url: str, path: str, content: bytes | None = None) -> Any:
    """The JSON answer of the registry. Raises TamisError with the words of its problem document."""
    where = f"{url.rstrip('/')}{path}"
    headers = {"content-type": "application/sql"} if content is not None else None
    try:
        answer = httpx.request(method, where, content=content, headers=headers, timeout=REQUEST_SECONDS)
        if answer.is_success:
            return answer.json()
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise InputError(f"this is no address of a registry: {error}", where=url) from None
    except httpx.TransportError as error:
        raise UnavailableError(
            f"the registry does not answer ({error})",
            where=url,
            hint="start it with `tamis registry` or `tamis up`, or say where it is with --registry",
        ) from None
    except ValueError:
        raise InputError("the answer is no JSON", where=where, hint="is this a Tamis registry?") from None
    raise _problem(answer, where)


def _problem(answer: httpx.Response, where: str) -> TamisError:
    try:
        document = answer.json()
        detail = document["detail"]
    except (ValueError, KeyError, TypeError):
        return InputError(f"HTTP status {answer.status_code}", where=where, hint="is this a Tamis registry?")
    place, hint = document.get("where"), document.get("hint")
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return UnavailableError(detail, where=place, hint=hint)
    if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
        return RefusedError(detail, where=place, hint=hint)
    return InputError(detail, where=place, hint=hint)
