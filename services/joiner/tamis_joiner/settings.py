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
    """Spark's master. `local[N]` runs N tasks at a time in this process."""
    checkpoint: str | None = None
    """Directory with offsets and state: a path, or a URI of one of Hadoop's file systems, such as
    `hdfs://host/path` or `s3a://bucket/path`. By default `joiner` under `TAMIS_DATA`.
    """
    memory: Memory = "2g"
    """Largest heap of Spark's driver; with a local master, of all of Spark except its Python workers. A size
    as Spark writes it: `640m`, `2g`.
    """
    batch: int = Field(default=100_000, ge=1)
    """About the most records of a batch. Two cores process 100,000 in about a second."""
    spark_conf: Path | None = None
    """File with more properties of Spark, in the format of `spark-defaults.conf`."""

    driver_host: str | None = None
    """Name or address at which executors reach the joiner. By default Spark chooses."""
    driver_bind: str | None = None
    """Address on which the driver listens. By default that of `TAMIS_JOINER_DRIVER_HOST`."""
    driver_port: Port | None = None
    """Port of the driver. By default a free one."""
    block_manager_port: Port | None = None
    """Port of the driver's block manager. By default a free one."""

    executors: int | None = Field(default=None, ge=1)
    """Number of executors. By default Spark chooses."""
    executor_memory: Memory | None = None
    """Heap of an executor, 1g by default. Each of its Python workers takes about 100 MB more."""
    executor_cores: int | None = Field(default=None, ge=1)
    """Tasks that an executor runs at a time: 1 with `TAMIS_JOINER_EXECUTORS`, otherwise Spark chooses."""
    environment: str | None = None
    """Packed environment that executors unpack: a path of the joiner's machine, or a URI. `python -m
    tamis_joiner.environment.pack` makes it.
    """
    executor_jars: str | None = None
    """Directory with the jars on the executors' machines, if it isn't the joiner's path."""
    executor_python: str | None = None
    """Python of the workers, if it isn't the joiner's path. The joiner's machine must have it, too."""
