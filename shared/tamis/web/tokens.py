"""Access tokens: random texts that clients send, of which a server knows only the SHA-256 digests.

A token has 256 random bits. Therefore a plain digest protects it: nobody can find a token by trying, as with
passwords, which need a slow hash.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

Role = Literal["reader", "writer"]
ROLES: tuple[Role, ...] = get_args(Role)

# Scanners for leaked secrets can search for this prefix.
PREFIX = "tamis_"
# The longest token that a server digests. Those of `new_token` have 49 characters.
LONGEST = 512


@dataclass(frozen=True)
class Token:
    """One token: its name, its digest in hexadecimal digits, and its rights."""

    name: str
    sha256: str
    role: Role
    streams: frozenset[str] | None = None  # an edge's streams that it may write to; None: all
    expires: datetime | None = None  # with a time zone
    readings: bool = False  # it may see readings at the registry
    operate: bool = False  # it may silence alerts and acknowledge episodes, also as a reader


class Tokens:
    """The valid tokens of a server, found by their digests."""

    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._by_digest = {token.sha256: token for token in tokens}

    def __len__(self) -> int:
        return len(self._by_digest)

    def find(self, text: str) -> Token | None:
        """The token with this text, also if it has expired.

        The time that this takes says nothing about valid tokens: only digests are looked up and compared, and
        a client can't choose the digest of its text.

        >>> token = Token("ci", digest("tamis_x"), "reader")
        >>> tokens = Tokens([token])
        >>> tokens.find("tamis_x") is token, tokens.find("tamis_y")
        (True, None)
        """
        if len(text) > LONGEST:
            return None
        found = digest(text)
        token = self._by_digest.get(found)
        return token if token is not None and hmac.compare_digest(token.sha256, found) else None

    def holds(self, token: Token, now: datetime) -> bool:
        """True if a token that was found before is still valid, with the same rights."""
        return self._by_digest.get(token.sha256) == token and (token.expires is None or now < token.expires)


def digest(text: str) -> str:
    """The SHA-256 digest of a token, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def new_token() -> str:
    """A new random token."""
    return PREFIX + secrets.token_urlsafe(32)
