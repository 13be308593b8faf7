"""Names of all environment variables of the fleet, and a warning of variables that no service knows."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Set
from difflib import get_close_matches

from tamis.settings.secret_files import SUFFIX
from tamis.telemetry.logs import get_logger

PREFIX = "TAMIS_"

# By prefix. They include the variables of other services, since one file often sets those of a whole fleet.
_NAMES: Mapping[str, str] = {
    PREFIX: "data log_level log_format telemetry_host telemetry_port telemetry_hosts tables partitions "
    "registry ca functions jars kernels exit_unavailable",
    f"{PREFIX}KAFKA_": "bootstrap security_protocol sasl_mechanism sasl_username oauth_token_url "
    "oauth_client_id oauth_scope oauth_ca ssl_ca ssl_certificate ssl_key",
    f"{PREFIX}SCHEMA_REGISTRY_": "url username ca",
    f"{PREFIX}REGISTRY_": "host port hosts provers proof_seconds tokens_file tls tls_certificate tls_key",
    f"{PREFIX}EDGE_": "http_host tokens_file tls tls_certificate tls_key",
    f"{PREFIX}JOINER_": "master checkpoint memory batch spark_conf driver_host driver_bind driver_port "
    "block_manager_port executors executor_memory executor_cores environment executor_jars executor_python",
}
_SECRETS: Mapping[str, str] = {
    PREFIX: "token",
    f"{PREFIX}KAFKA_": "sasl_password oauth_client_secret ssl_key_password",
    f"{PREFIX}SCHEMA_REGISTRY_": "password",
    f"{PREFIX}REGISTRY_": "tls_key_password",
    f"{PREFIX}EDGE_": "tls_key_password",
}
# A letter too many, too few or wrong in the shortest names.
_LEAST_SIMILARITY = 0.75
# Of the Compose files, which have no service of their own for them.
_COMPOSE = frozenset({"TAMIS_VERSION", "TAMIS_IMAGES"})


def _with_prefix(names: Mapping[str, str]) -> frozenset[str]:
    return frozenset(f"{prefix}{name.upper()}" for prefix, some in names.items() for name in some.split())


SECRETS = _with_prefix(_SECRETS)
KNOWN = _with_prefix(_NAMES) | SECRETS | {f"{name}{SUFFIX}" for name in SECRETS} | _COMPOSE

_log = get_logger("settings")


def unknown_variables(
    names: Set[str] | Mapping[str, str], referred: Set[str] = frozenset()
) -> Iterator[tuple[str, str | None]]:
    """Each variable `TAMIS_…` that no service knows, with the nearest known name if one is near. `referred`:
    variables that a configuration file refers to as `${NAME}`.

    >>> list(unknown_variables({"TAMIS_PARTITION", "TAMIS_DATA", "TAMIS_XYZZY", "PATH"}))
    [('TAMIS_PARTITION', 'TAMIS_PARTITIONS'), ('TAMIS_XYZZY', None)]
    """
    known = KNOWN | {name for used in referred for name in (used, f"{used}{SUFFIX}")}
    for name in sorted(names):
        upper = name.upper()  # pydantic-settings ignores the case
        if upper.startswith(PREFIX) and not {name, upper} & known:
            # With the prefix, which all have in common, any two names would be near.
            own = {other.removeprefix(PREFIX): other for other in sorted(known)}
            near = get_close_matches(upper.removeprefix(PREFIX), own, 1, _LEAST_SIMILARITY)
            yield name, own[near[0]] if near else None


def warn_of_unknown_variables(
    referred: Set[str] = frozenset(), environment: Mapping[str, str] = os.environ
) -> None:
    """Log a warning for each variable that no service knows; a misspelt setting would be ignored silently."""
    for name, nearest in unknown_variables(environment, referred):
        meant = {} if nearest is None else {"nearest": nearest}
        _log.warning("no setting has the name of this environment variable", variable=name, **meant)
