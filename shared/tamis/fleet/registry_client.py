"""The registry as its clients see it: requests, and its problem documents as errors."""

from __future__ import annotations

from typing import Any

import httpx

from tamis.errors import InputError, NotAcceptedError, RefusedError, TamisError, UnavailableError

REQUEST_SECONDS = 40.0
# What the registry takes as the name of a text.
LONGEST_FILE = 255


def apply_sql(url: str, sql: str, file: str | None) -> list[dict[str, Any]]:
    """Give the registry a text of SQL statements. Mistakes are told as `file`:line:column.

    Raises TamisError with the words of the registry's problem document.
    """
    query = {}
    if file is not None:
        query["file"] = "".join(sign if sign.isprintable() else "?" for sign in file)[-LONGEST_FILE:]
    made: list[dict[str, Any]] = request("POST", url, "/v1/statements", sql.encode(), query)
    return made


def request(
    method: str, url: str, path: str, content: bytes | None = None, query: dict[str, str] | None = None
) -> Any:
    """The JSON answer of the registry. Raises TamisError with the words of its problem document."""
    where = f"{url.rstrip('/')}{path}"
    headers = {"content-type": "application/sql"} if content is not None else None
    try:
        answer = httpx.request(
            method, where, params=query, content=content, headers=headers, timeout=REQUEST_SECONDS
        )
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
    if document.get("type") in ("urn:tamis:problem:not-bounded", "urn:tamis:problem:not-accepted"):
        return NotAcceptedError(detail, where=place, hint=hint)
    if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
        return RefusedError(detail, where=place, hint=hint)
    return InputError(detail, where=place, hint=hint)
