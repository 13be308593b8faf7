"""Settings of the registry's clients: token, and authority of the certificate."""

from __future__ import annotations

from pathlib import Path

from pydantic import SecretStr
from pydantic_settings import SettingsConfigDict

from tamis.settings.common import load
from tamis.settings.secret_files import EnvironmentSettings
from tamis.web.registry_client import RegistryClient


class ClientSettings(EnvironmentSettings):
    """`TAMIS_TOKEN` (or `TAMIS_TOKEN_FILE`) and `TAMIS_CA`."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True, env_ignore_empty=True)

    token: SecretStr | None = None
    """The token, if the registry needs one."""
    ca: Path | None = None
    """PEM file of the authority that signed the registry's certificate. By default the authorities that
    Python trusts.
    """


def registry_client(url: str) -> RegistryClient:
    """A client of the registry at `url` with the token and the authority of the environment.

    Raises InputError if a file of these settings can't be used.
    """
    settings = load(ClientSettings)
    token = settings.token.get_secret_value() if settings.token else None
    return RegistryClient(url, token=token, ca=settings.ca)
