"""Tokens and TLS of the HTTP sources: from the configuration file, and from the environment before it."""

from __future__ import annotations

from pydantic_settings import SettingsConfigDict

from tamis.settings import load
from tamis.settings.http_security import HttpSecurity, HttpSettings, http_security
from tamis_edge.settings import EdgeConfig, Http, HttpSource, Tls


class EdgeHttpSettings(HttpSettings):
    """Tokens and TLS of the HTTP sources, from the environment."""

    model_config = SettingsConfigDict(env_prefix="TAMIS_EDGE_")

    def setting(self, field: str) -> str:
        """The names of a field in the configuration file and in the environment."""
        return f"http.{field.replace('tls_', 'tls.', 1)} (or {super().setting(field)})"


def protection(http: Http, environment: EdgeHttpSettings) -> EdgeHttpSettings:
    """Tokens and TLS of the configuration, with the values of the environment in place of the file's."""
    given = environment.model_dump(exclude_none=True)
    values: dict[str, object] = {"tokens_file": http.tokens_file}
    if not {"tls", "tls_certificate", "tls_key"} & given.keys():
        if isinstance(http.tls, Tls):
            files = http.tls
            values |= {"tls_certificate": files.certificate, "tls_key": files.key}
            values["tls_key_password"] = files.key_password
        else:
            values["tls"] = http.tls
    return EdgeHttpSettings.model_construct(**{**values, **given})


def http_protection(config: EdgeConfig) -> HttpSecurity:
    """The protection of an edge's HTTP sources; nothing if it has none.

    Raises InputError if other machines could use them without a token or without TLS.
    """
    if not any(isinstance(source, HttpSource) for source in config.sources):
        return HttpSecurity()
    return http_security(protection(config.http, load(EdgeHttpSettings)), config.http.host)
