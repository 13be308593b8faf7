"""Body of a request, with limits of size and time."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

# A client that needs longer blocks others on purpose, or has a broken connection.
SECONDS = 30.0


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body, at most `limit` bytes.

    Raises:
        HTTPException: the body is too large (413), too slow (408) or compressed (415), or its sender has gone
            (400).
    """
    encoding = request.headers.get("content-encoding", "identity").strip()
    if encoding.lower() != "identity":
        raise HTTPException(
            415, f"Content-Encoding {encoding!r:.100} is not supported; send the body uncompressed"
        )
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > limit:
                    raise HTTPException(413, f"the limit is {limit} bytes; send it in parts")
    except TimeoutError:
        raise HTTPException(408, f"the body did not come within {SECONDS:g} s") from None
    except ClientDisconnect:
        raise HTTPException(400, "the body is not whole") from None
    return bytes(body)
