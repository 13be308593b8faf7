"""Setting for the directories with the files of tables, shared by registry and joiner."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict

from tamis.query.file_access import UNRESTRICTED, FileAccess


class TableSettings(BaseSettings):
    """`TAMIS_TABLES`: directories, with the system's path separator between them. Everybody who may apply
    statements can read every CSV and Parquet file in them.
    """

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    tables: str = ""
    """Directories with the files of [tables](sql.md#files-of-tables-and-patterns), or single files, separated
    by `:`. Without it the registry reads no file, and refuses `CREATE TABLE`.
    """

    @property
    def registry(self) -> FileAccess:
        """The files that statements may name at the registry. The address of a client doesn't count, since
        a proxy or another user of this machine also sends from loopback.
        """
        return FileAccess.from_setting(self.tables)

    @property
    def joiner(self) -> FileAccess:
        """Access to the files that tables in plans name. Without TAMIS_TABLES every file may be read, since
        the registry has checked them.
        """
        return FileAccess.from_setting(self.tables) if self.tables else UNRESTRICTED
