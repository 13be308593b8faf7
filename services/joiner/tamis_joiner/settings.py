"""Settings of the joiner, from the environment variables `TAMIS_JOINER_…`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

Memory = Annotated[str, Field(pattern=r"^[1-9][0-9]*[kKmMgGtT]$")]
Port = Annotated[int, Field(ge=1, le=65_535)]

_UNITS = "kmgt"


def bytes_of(memory: str) -> int:
    """A size of memory in Spark's notation as bytes.

    >>> bytes_of("640m"), bytes_of("1G") == 2**30
    (671088640, True)
    """
    return int(memory[:-1]) << 10 * (_UNITS.index(memory[-1].lower()) + 1)


class JoinerSettings(BaseSettings):
    """Settings of Spark and its checkpoint. `checkpoint` None stands for `joiner` under TAMIS_DATA.

    The settings from `driver_host` on are for a cluster; a local master ignores them. If a value is None,
    Spark's default applies.
    """

    model_config = SettingsConfigDict(env_prefix="TAMIS_JOINER_", frozen=True)

    master: str = "local[2]"
    # A path, or a URI of one of Hadoop's file systems, such as hdfs://host/path or s3a://bucket/path.
    checkpoint: str | None = None
    # Largest heap of the driver; with a local master, of all of Spark except the Python workers.
    memory: Memory = "2g"
    # The most records of a batch: two cores process 100,000 in about a second.
    batch: int = Field(default=100_000, ge=1)
    # More properties of Spark, in the format of spark-defaults.conf.
    spark_conf: Path | None = None

    # Where executors reach the driver, and where the driver listens (by default at `driver_host`).
    driver_host: str | None = None
    driver_bind: str | None = None
    driver_port: Port | None = None
    block_manager_port: Port | None = None

    executors: int | None = Field(default=None, ge=1)
    executor_memory: Memory | None = None
    executor_cores: int | None = Field(default=None, ge=1)
    # Archive made by tamis_joiner.environment.pack, a path of this machine or a URI. Executors unpack it.
    environment: str | None = None
    # For executors that have Tamis installed, at other paths than the joiner's.
    executor_jars: str | None = None
    executor_python: str | None = None
