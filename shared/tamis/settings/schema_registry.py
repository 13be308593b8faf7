"""Settings of the connection to a schema registry with the API of Confluent's Schema Registry."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, FilePath, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict

from tamis.settings.secret_files import EnvironmentSettings

SECONDS = 10.0  # of one request


class SchemaRegistryAccess(BaseModel):
    """Address of a schema registry, and how to be admitted there."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: str
    username: str | None = None
    password: SecretStr | None = None
    ca: FilePath | None = None  # PEM file of the authorities to trust; by default those of certifi

    @model_validator(mode="after")
    def _complete(self) -> Self:
        scheme, _, rest = self.url.partition("://")
        if scheme not in ("http", "https") or not rest:
            raise ValueError("the address must begin with http:// or https://")
        if "@" in rest.partition("/")[0]:
            # Addresses are in logs and messages.
            raise ValueError("give username and password in fields of their own, not in the address")
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password belong together: set both or none")
        return self

    def client_config(self) -> dict[str, Any]:
        """Configuration of confluent-kafka's `SchemaRegistryClient`. It doesn't retry, since callers do."""
        config: dict[str, Any] = {"url": self.url, "timeout": SECONDS, "max.retries": 0}
        if self.username is not None and self.password is not None:
            config["basic.auth.user.info"] = f"{self.username}:{self.password.get_secret_value()}"
        if self.ca is not None:
            config["ssl.ca.location"] = str(self.ca)
        return config


class SchemaRegistrySettings(EnvironmentSettings):
    """The schema registry from `TAMIS_SCHEMA_REGISTRY_…`; without `url` there is none."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_SCHEMA_REGISTRY_", frozen=True)

    url: str | None = None
    """Address of the schema registry."""
    username: str | None = None
    """User name, if it needs one."""
    password: SecretStr | None = None
    """Password of this user."""
    ca: FilePath | None = None
    """PEM file of the authorities to trust. By default those of certifi."""

    @model_validator(mode="after")
    def _usable(self) -> Self:
        _ = self.access
        return self

    @property
    def access(self) -> SchemaRegistryAccess | None:
        """The schema registry; None if none is configured."""
        return None if self.url is None else SchemaRegistryAccess(**self.model_dump())
