"""Functions that the registry's routes share: parameters, bodies, and work that ends with its client."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Annotated, Any, TypeVar

import orjson
from fastapi import Path, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tamis.errors import InputError
from tamis.web.registry_client import LONGEST_FILE

T = TypeVar("T")

BODY_LIMIT = 1024 * 1024
# The last is what curl and others send with whatever text they are given, unless they are told.
TEXT_TYPES = ("application/sql", "text/plain", "text/sql", "application/x-www-form-urlencoded")

Name = Annotated[str, Path(max_length=255)]
File = Annotated[
    str | None,
    Query(
        max_length=LONGEST_FILE,
        pattern=r"^[^\x00-\x1f\x7f]+$",
        description="How messages call the text: FILE:line:column",
    ),
]

SQL_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            kind: {"schema": {"type": "string"}, "example": "SHOW ALERTS;"}
            for kind in ("application/sql", "text/plain")
        },
    }
}


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, which is cancelled if the client disconnects first. The body must have
    been read.
    """
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise HTTPException(HTTPStatus.BAD_REQUEST, "the client has gone")
        return task.result()
    finally:
        for one in (task, gone):
            if one.cancel():
                with suppress(asyncio.CancelledError):
                    await one


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def read_sql(request: Request) -> str:
    """The SQL text of a request. Raises HTTPException and InputError if the body is not SQL text."""
    kind = request.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    if kind not in TEXT_TYPES:
        raise HTTPException(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"send SQL as {' or '.join(TEXT_TYPES[:2])}, not as {kind}"
        )
    body = await request.body()
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        raise InputError(
            "the text is not UTF-8", where=f"byte {error.start}", hint="save the file as UTF-8"
        ) from None


def as_json(document: object) -> Response:
    """A JSON document as the answer."""
    return Response(orjson.dumps(document), media_type="application/json")


def once(request: Request, known: Sequence[str]) -> None:
    """Refuse parameters that are unknown or given twice. A lease whose predicate was misspelt would otherwise
    be a lease of every tuple.
    """
    for name, count in Counter(name for name, _ in request.query_params.multi_items()).items():
        if name not in known or count > 1:
            what = f"'{name}' is given {count} times" if name in known else f"there is no parameter '{name}'"
            raise InputError(what, hint=f"give {', '.join(known)}, each once")
