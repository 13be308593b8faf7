"""Where the files of tables lie that a fleet reads: the same for its registry and its joiner."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict

from tamis.query.reach import Reach


class TableSettings(BaseSettings):
    """`TAMIS_TABLES`: directories with the system's separator of paths between them; none unless set. Whoever
    may apply statements can have every CSV and Parquet file in them read.
    """

    model_config = SettingsConfigDict(env_prefix="TAMIS_", frozen=True)

    tables: str = ""

    @property
    def reach(self) -> Reach:
        """The files that tables may name."""
        return Reach.of(self.tables)
