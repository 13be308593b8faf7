"""Small files on a file system of Hadoop, read and written by Spark's JVM."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from tamis_joiner.checkpoint.location import Location
from tamis_joiner.spark.jvm_messages import causes


class HadoopFiles:
    """The files in the directory at `location`, as `tamis_joiner.checkpoint.location.Files`."""

    def __init__(self, spark: SparkSession, location: Location) -> None:
        self.location = location
        self._gateway: Any = spark.sparkContext._gateway
        self._jvm: Any = spark.sparkContext._jvm
        self._configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()

    def names(self, folder: str) -> list[str]:
        """As `Files.names`."""
        try:
            system, path = self._find(folder)
            return (
                [str(s.getPath().getName()) for s in system.listStatus(path)] if system.exists(path) else []
            )
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def read(self, name: str) -> str | None:
        """As `Files.read`."""
        try:
            system, path = self._find(name)
            if not system.exists(path):
                return None
            stream = system.open(path)
            try:
                return bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def write(self, name: str, text: str) -> None:
        """As `Files.write`."""
        try:
            system, path = self._find(name)
            stream = system.create(path, True)
            try:
                stream.write(text.encode())
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def replace(self, name: str, text: str) -> None:
        """As `Files.replace`."""
        draft = f"{name.rpartition('/')[2]}.new"
        self.write(draft, text)
        try:
            (_, source), (_, target) = self._find(draft), self._find(name)
            hadoop = self._jvm.org.apache.hadoop.fs
            rename = getattr(hadoop, "Options$Rename")
            options = self._gateway.new_array(rename, 1)
            options[0] = rename.OVERWRITE
            context = hadoop.FileContext.getFileContext(target.toUri(), self._configuration)
            context.rename(source, target, options)
        except Py4JJavaError as error:
            raise _os_error(error) from error

    def _find(self, name: str) -> tuple[Any, Any]:
        path = self._jvm.org.apache.hadoop.fs.Path(f"{self.location.uri}/{name}")
        return path.getFileSystem(self._configuration), path


def _os_error(error: Py4JJavaError) -> OSError:
    return OSError(", caused by ".join(causes(error)))
