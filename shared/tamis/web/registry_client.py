"""Client of the registry's HTTP API; problem documents become errors."""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from shlex import quote
from typing import Any

import httpx

from tamis.errors import (
    InputError,
    NotAcceptedError,
    Position,
    RefusedError,
    SqlError,
    SqlErrors,
    TamisError,
    UnavailableError,
)
from tamis.web.tls import client_context

# The registry may plan for long before it answers to a statement. What it answers from memory comes at once,
# or not at all.
REQUEST_SECONDS = 40.0
GET_SECONDS = 15.0
# The registry's limit on the file name of a text.
LONGEST_FILE = 255

_TOKEN = "the token comes from TAMIS_TOKEN, or from the file that TAMIS_TOKEN_FILE names"

_REPLACES = re.compile(r"CREATE\s+OR\s+REPLACE\b", re.IGNORECASE)


class RegistryClient:
    """Requests to one registry, with the token of its caller."""

    def __init__(self, url: str, *, token: str | None = None, ca: Path | None = None) -> None:
        """`ca`: PEM file of the authority that signed the registry's certificate; by default those that
        Python trusts. Raises InputError if it can't be used, or if the token can't be in a header.
        """
        if token is not None and not (token.isascii() and token.isprintable()):
            raise InputError(
                "the token has line ends or characters that are not ASCII",
                where="TAMIS_TOKEN, TAMIS_TOKEN_FILE",
                hint="write the token as `tamis token` printed it, and nothing else",
            )
        self.url = url
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._verify = True if ca is None else client_context(ca, where="TAMIS_CA")

    def apply_sql(self, sql: str, file: str | None, *, keep: bool = False) -> list[dict[str, Any]]:
        """Apply a text of SQL statements. Mistakes are at `file`:line:column. `keep`: a definition that is in
        service in another form stays as it is.

        Raises TamisError with the message of the registry's problem document.
        """
        query = {"existing": "keep"} if keep else {}
        if file is not None:
            query["file"] = "".join(sign if sign.isprintable() else "?" for sign in file)[-LONGEST_FILE:]
        made: list[dict[str, Any]] = self.request("POST", "/v1/statements", sql.encode(), query)
        return made

    def request(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        query: dict[str, str] | None = None,
        *,
        seconds: float | None = None,
        media_type: str = "application/sql",
    ) -> Any:
        """The JSON answer of the registry; None if the answer is empty. The registry has `seconds` for it, by
        default 15 for a GET and 40 for other requests. `media_type` is that of `content`. Raises TamisError
        with the message of its problem document.
        """
        if seconds is None:
            seconds = GET_SECONDS if method == "GET" else REQUEST_SECONDS
        where = f"{self.url.rstrip('/')}{path}"
        headers = {"content-type": media_type} if content is not None else {}
        try:
            answer = httpx.request(
                method,
                where,
                params=query,
                content=content,
                headers=headers | self._headers,
                timeout=seconds,
                verify=self._verify,
            )
            if answer.is_success:
                return answer.json() if answer.content else None
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise InputError(f"not the address of a registry: {error}", where=self.url) from None
        except httpx.ReadTimeout:
            raise UnavailableError(
                f"the registry took the request and did not answer within {seconds:g} s",
                where=self.url,
                hint="it hangs or has too much to do: look at its process and its log",
            ) from None
        except httpx.TransportError as error:
            raise _unreachable(error, self.url) from None
        except ValueError:
            raise InputError(
                "the answer is not JSON", where=where, hint="is this a Tamis registry?"
            ) from None
        raise _problem(answer, where)


def _unreachable(error: httpx.TransportError, url: str) -> TamisError:
    """The error of a request that got no answer."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLError):
        cause = cause.__cause__ or cause.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return InputError(
            f"the registry's certificate is not trusted: {cause.verify_message}",
            where=url,
            hint="set TAMIS_CA to the PEM file of the authority that signed it, and use the name or address "
            "that the certificate has",
        )
    if isinstance(cause, ssl.SSLError) and cause.reason == "WRONG_VERSION_NUMBER":
        return InputError("the registry does not use TLS here", where=url, hint="use http:// in its address")
    hint = "start it with `tamis registry` or `tamis up`, or set its address by --registry or TAMIS_REGISTRY"
    if isinstance(error, httpx.RemoteProtocolError | httpx.ReadError) and url.startswith("http:"):
        hint = "if it uses TLS, give its address with https://"
    return UnavailableError(f"the registry does not answer ({error})", where=url, hint=hint)


def difference(outcome: Mapping[str, Any], url: str) -> str:
    """Message: how a statement differs from the definition in service, and how to replace that definition.

    `outcome` is the statement's outcome by `RegistryClient.apply_sql`.
    """
    kind, name, where = outcome["kind"], outcome["name"], outcome["where"]
    lines = unified_diff(
        outcome["in_service"].splitlines(), outcome["asked"].splitlines(), "in service", where, lineterm=""
    )
    apply = f"tamis apply {quote(where.rsplit(':', 2)[0])} --registry {url}"
    if outcome["statement"] != f"create {kind}" or _REPLACES.match(outcome["asked"]):
        how = f"run: {apply}"
    elif kind == "alert":
        how = f"write CREATE OR REPLACE ALERT {name} there, and run: {apply}"
    else:
        how = f"write DROP {kind.upper()} {name} before it, and run: {apply}"
    head = f"{kind} '{name}' stays as it is in service; {where} differs:"
    return "\n  ".join([head, *lines, f"to have it as the file says, {how}"])


def _mistake(one: Mapping[str, Any]) -> SqlError:
    """One mistake of a problem document."""
    place = None
    if one.get("line") is not None:
        place = Position(one["line"], one["column"], one.get("file"), one.get("marked", ""))
    return SqlError(one["what"], place, one["hint"])


def _problem(answer: httpx.Response, where: str) -> TamisError:
    try:
        document = answer.json()
        detail = document["detail"]
    except (ValueError, KeyError, TypeError):
        return InputError(f"HTTP status {answer.status_code}", where=where, hint="is this a Tamis registry?")
    if document.get("errors"):
        return SqlErrors([_mistake(one) for one in document["errors"]])
    place, hint = document.get("where"), document.get("hint")
    if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
        return InputError(detail, where=where, hint=_TOKEN)
    if answer.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return UnavailableError(detail, where=place, hint=hint)
    if document.get("type") in ("urn:tamis:problem:not-bounded", "urn:tamis:problem:not-accepted"):
        return NotAcceptedError(detail, where=place, hint=hint)
    if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
        return RefusedError(detail, where=place, hint=hint)
    return InputError(detail, where=place, hint=hint)
