"""Headers of every answer that limit what a browser does with it."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import Message, Send

# An answer is data: opened in a browser it loads, runs and frames nothing. Pages have policies of their own.
SAFE_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


def with_safe_headers(send: Send) -> Send:
    """A `send` that adds `SAFE_HEADERS` where the application has set no others."""

    async def send_safely(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in SAFE_HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return send_safely
