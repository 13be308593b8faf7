"""Setting for the directories with the files of tables, shared by registry and joiner."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict

from tamis.query.file_access import UNRESTRICTED, FileAccess
from tamis.web.addresses import is_loopback


class TableSettings(BaseSettings):
    """`TAMIS_TABLES`: directories, with the system's path separator between them. Everybody who may apply
    statements can read every CSV and Parquet file in them.
    """

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    tables: str = ""
    """Directories with the files of [tables](sql.md#application-time), separated by `:`. Without it the
    registry takes any file if only this machine can send statements, and refuses `CREATE TABLE` otherwise.
    """

    def registry(self, host: str, names: str) -> FileAccess:
        """The files that tables in statements may name, if the registry listens on `host`. Without
        TAMIS_TABLES these are all files if only this machine can send statements, and none if others can:
        directly, or through a proxy that uses other `names`.
        """
        alone = is_loopback(host) and not names.strip(" ,")
        return UNRESTRICTED if alone and not self.tables else FileAccess.from_setting(self.tables)

    @property
    def joiner(self) -> FileAccess:
        """Access to the files that tables in plans name. Without TAMIS_TABLES every file may be read, since
        the registry has checked them.
        """
        return FileAccess.from_setting(self.tables) if self.tables else UNRESTRICTED
