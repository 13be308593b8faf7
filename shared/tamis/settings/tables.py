"""Where the files of tables lie that a fleet reads: the same for its registry and its joiner."""

from __future__ import annotations

import ipaddress

from pydantic_settings import BaseSettings, SettingsConfigDict

from tamis.query.reach import ANYWHERE, Reach


class TableSettings(BaseSettings):
    """`TAMIS_TABLES`: directories with the system's separator of paths between them. Whoever may apply
    statements can have every CSV and Parquet file in them read.
    """

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    tables: str = ""

    def registry(self, host: str, names: str) -> Reach:
        """The files that tables may name in statements that come to `host`. Unless it is set: all where they
        come from this machine only, none where others may send them, directly or, where it has other `names`,
        by way of a proxy.
        """
        alone = _is_loopback(host) and not names.strip(" ,")
        return ANYWHERE if alone and not self.tables else Reach.of(self.tables)

    @property
    def joiner(self) -> Reach:
        """The files that tables may name in plans, all unless it is set: a registry has let them pass."""
        return Reach.of(self.tables) if self.tables else ANYWHERE


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
