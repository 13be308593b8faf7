"""File of access tokens: YAML with the digests of tokens and their rights."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from tamis.errors import InputError
from tamis.settings.yaml_file import read_yaml
from tamis.web.tokens import Role, Token, Tokens


def _with_zone(time: datetime) -> datetime:
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    # The name is in logs and answers, where it says which token was used.
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,99}$")]
    role: Role
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    streams: list[str] | None = None
    expires: Annotated[datetime, AfterValidator(_with_zone)] | None = None
    readings: bool = False
    operate: bool = False


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    tokens: list[_Entry]

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names: dict[str, str] = {}
        for entry in self.tokens:
            if entry.sha256 in names:
                raise ValueError(f"{names[entry.sha256]!r} and {entry.name!r} have the same digest")
            names[entry.sha256] = entry.name
        return self


def read_tokens(path: Path) -> Tokens:
    """The tokens of a file. An empty list is allowed: no token is valid then.

    Raises InputError if the file can't be read or has mistakes, with the line of each.
    """
    return Tokens(
        Token(
            entry.name,
            entry.sha256,
            entry.role,
            None if entry.streams is None else frozenset(entry.streams),
            entry.expires,
            entry.readings,
            entry.operate,
        )
        for entry in read_yaml(path, _File, "docs/security.md").tokens
    )


class TokenFile:
    """The tokens of a file, as they were when it was read last."""

    def __init__(self, path: Path) -> None:
        """Raises InputError if the file can't be used."""
        self.path = path
        self.tokens = read_tokens(path)

    def reload(self) -> None:
        """Read the file again. Raises InputError if it can't be used, and keeps the tokens then."""
        self.tokens = read_tokens(self.path)

    def current(self) -> Tokens:
        """The tokens that are valid now."""
        return self.tokens


def token_entry(token: Token) -> dict[str, object]:
    """The entry of a token in the list `tokens` of a file.

    Raises InputError if the file can't have it.
    """
    entry: dict[str, object] = {"name": token.name, "role": token.role, "sha256": token.sha256}
    if token.streams is not None:
        entry["streams"] = sorted(token.streams)
    if token.expires is not None:
        entry["expires"] = token.expires.isoformat()
    if token.readings:
        entry["readings"] = True
    if token.operate:
        entry["operate"] = True
    try:
        _Entry.model_validate(entry)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False)
        raise InputError(
            f"{first['input']!r}: {first['msg']}", where=f"the token's {first['loc'][0]}"
        ) from None
    return entry
