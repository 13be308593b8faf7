"""Limits of a request's body: its size, and the time until it is whole.

`Guard` applies them to every request, so they hold however a route reads its body.
"""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Send

# A client that needs longer blocks others on purpose, or has a broken connection.
SECONDS = 30.0


class LimitedBody:
    """`receive` and `send` of a request whose body has at most `limit` bytes.

    `receive` raises HTTPException for a body that is too large (413) or too slow (408). If the answer has
    begun, it says instead that the client has gone, which ends the answer.
    """

    def __init__(self, receive: Receive, send: Send, limit: int) -> None:
        self._receive, self._send, self._limit = receive, send, limit
        self._size = 0
        self._deadline: float | None = None
        self._whole = self._answered = False

    async def send(self, message: Message) -> None:
        """Pass on a part of the answer."""
        self._answered = True
        await self._send(message)

    async def receive(self) -> Message:
        """The next part of the body, and after the body the client's end."""
        if self._whole:
            return await self._receive()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + SECONDS
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            return self._refuse(408, f"the body did not come within {SECONDS:g} s")
        self._size += len(message.get("body", b""))
        if self._size > self._limit:
            return self._refuse(413, f"the limit is {self._limit} bytes; send it in parts")
        self._whole = not message.get("more_body", False)
        return message

    def _refuse(self, status: int, detail: str) -> Message:
        if self._answered:
            return {"type": "http.disconnect"}
        raise HTTPException(status, detail)
