"""Spark in this process: its settings, its start and its end."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from tamis.errors import TamisError, UnavailableError
from tamis.java import class_archives
from tamis.java.jars import jars
from tamis.telemetry import get_logger
from tamis_joiner.environment import contents
from tamis_joiner.settings import JoinerSettings, bytes_of
from tamis_joiner.spark.authentication import AUTHENTICATION, check_secret
from tamis_joiner.spark.cluster import cluster_properties, fetches_jars, is_local, read_properties
from tamis_joiner.spark.jvm_messages import CONFIGURATION, KILLED_HINT, forwarded_logs
from tamis_joiner.spark.processes.unzipped_home import unzipped_home

log = get_logger("joiner")

NAME = "tamis-joiner"
# The JVM ends once its standard input is closed; after this time it is killed.
JVM_SECONDS = 4.0
# After an error of Spark, a JVM that was killed has ended within this time.
_ENDING_SECONDS = 0.5

# Decision 14 has the measurements behind these settings.
_SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.session.timeZone": "UTC",
    # State in RocksDB; each commit uploads a changelog, not a snapshot.
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # The query has no timers and no watermark of Spark's: a batch without records has nothing to do.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # An idle query asks Kafka for new offsets this often. A shorter delay costs CPU, a longer one latency.
    "spark.sql.streaming.pollingDelay": "50ms",
    # The service reads the reports several times a second.
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    # By default Spark keeps up to 100,000 tasks for its web page, which is off.
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    # Shuffle files are deleted after their batch and not at a later garbage collection.
    "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
    # A retry needs the last batch only. The others allow to go back where files are damaged.
    "spark.sql.streaming.minBatchesToRetain": "20",
    # Spark logs a query's options when it fails. By default it redacts neither JAAS nor private keys in PEM.
    "spark.redaction.regex": "(?i)secret|password|token|access[.]?key|jaas|keystore|[.]pem",
    # Hadoop's file systems set the rights of what they make, whatever the umask of the process is.
    "spark.hadoop.fs.permissions.umask-mode": "077",
    # A task takes no longer than the wait for a better executor would.
    "spark.locality.wait": "0",
    # Python workers are forked with their modules imported, and the garbage collector doesn't scan these
    # after each task.
    "spark.python.daemon.module": "tamis_joiner.spark.processes.daemon",
    # Spark has one more daemon, with its own workers, for each environment of workers. By default that of
    # stateful operators differs from that of `mapInArrow` in this setting alone.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
    # Spark starts them by `python -m`, which would look for modules in the working directory first.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
    # Python and the JVM exchange pickled objects and state. Everybody on the machine could connect to a port.
    "spark.python.unix.domain.socket.enabled": "true",
}

# For a checkpoint that is a path. Without its native library, Hadoop's local file system starts `chmod` about
# twelve times a batch, which takes most of a short batch's time. This one does the same in Java.
LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}

# Java's second compiler is off. It costs more in the first minutes than it saves, since the joins run in
# Python. On a busy machine Spark started in 12 s instead of 34.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1"
# For a local master. Java takes the collector G1 on two processors or more, which grows the heap to its limit
# rather than collect often. The serial one grows it only as far as live objects need, and gives memory back,
# but not below the initial size: by default a 64th of the machine's memory, most of which dead objects fill.
# The size for metadata is what Spark needs: below it, each step of its growth would cost a full collection.
_SERIAL = (
    "-XX:+UseSerialGC -XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40"
    " -XX:InitialHeapSize=256m -XX:NewSize=128m -XX:MetaspaceSize=192m"
)
# Variables with options of every JVM, in which an operator may choose a collector.
_OPTIONS_OF_JAVA = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")
_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
# A full collection stops the JVM for a time that grows with the heap.
_LARGEST_SERIAL = 2 * 2**30
# By default the C library makes up to eight heaps a processor for the threads of a process, and doesn't give
# back what is free in them. RocksDB, Arrow and Java's compiler allocate there.
_MALLOC_ARENAS = "2"
# Log4j writes events as JSON. Executors on other machines don't have the joiner's file, only the one in
# Spark's own jar. Spark's setting for JSON logs has no effect in PySpark.
_JSON_LOGS = {
    "driver": CONFIGURATION.as_uri(),
    "executor": "classpath:org/apache/spark/log4j2-json-layout.properties",
}
# Where PySpark takes further arguments of spark-submit from.
_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
# The directory that has Spark. Without it PySpark takes its own package.
_SPARK_HOME = "SPARK_HOME"
# Spark starts its JVM by a launcher, a second JVM that runs for half a second.
_LAUNCHER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def session(
    settings: JoinerSettings,
    java_options: str = JAVA_OPTIONS,
    stderr: int | None = None,
    *,
    local_files: bool = True,
    directory: Path | None = None,
) -> SparkSession:
    """Start Spark in this process. `java_options` are the options of all JVMs. `stderr` is a file descriptor
    for the JVM's standard error, to which it then writes its log as JSON; `local_files` says that the
    checkpoint is a path. `directory` is the JVM's working directory if `stderr` is given.
    """
    # With a local master all runs on this machine; the executors of a cluster must reach the driver.
    if is_local(settings.master):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        os.environ.setdefault("MALLOC_ARENA_MAX", _MALLOC_ARENAS)
    os.environ["PYSPARK_PYTHON"] = _python(settings)
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ["SPARK_LAUNCHER_OPTS"] = _LAUNCHER_OPTIONS
    properties = _properties(settings, java_options, local_files=local_files, json_logs=stderr is not None)
    # The operator of a cluster decides how its processes authenticate: they have a file in common.
    fixed = properties | AUTHENTICATION if is_local(settings.master) else properties
    given = read_properties(settings.spark_conf, fixed)
    check_secret(settings, given)
    properties |= AUTHENTICATION
    if stderr is not None:
        conf = SparkConf(loadDefaults=False).setAll(list(properties.items()))
        with _arguments(settings):
            # PySpark has no other way to give the JVM another standard error than that of this process.
            gateway = launch_gateway(conf, {"stderr": stderr, "cwd": directory})  # type: ignore[no-untyped-call]
        SparkContext._ensure_initialized(gateway=gateway)
    builder = SparkSession.builder
    for name, value in (properties | given).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


@contextmanager
def _arguments(settings: JoinerSettings) -> Iterator[None]:
    """Give the JVM the path of the operator's properties, not the properties: they may be secrets, and the
    command line of a process is visible to everybody on the machine.
    """
    if settings.spark_conf is None:
        yield
        return
    before = os.environ.get(_ARGUMENTS)
    options = ["--properties-file", str(settings.spark_conf.resolve()), "--load-spark-defaults"]
    os.environ[_ARGUMENTS] = f"{shlex.join(options)} {before or 'pyspark-shell'}"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_ARGUMENTS]
        else:
            os.environ[_ARGUMENTS] = before


def _python(settings: JoinerSettings) -> str:
    """The Python of the workers; with a packed environment, relative to the working directory of the JVM."""
    if settings.environment and not is_local(settings.master):
        return contents.PYTHON
    return settings.executor_python or sys.executable


def _properties(
    settings: JoinerSettings, java_options: str, *, local_files: bool, json_logs: bool
) -> dict[str, str]:
    found = dict(_SETTINGS)
    if not is_local(settings.master):
        del found["spark.driver.host"], found["spark.driver.bindAddress"]
    # Where executors fetch the jars from the driver, the class isn't on their class path.
    if local_files and not fetches_jars(settings):
        found |= LOCAL_FILES
    for process, configuration in _JSON_LOGS.items():
        logs = f"-Dlog4j2.configurationFile={configuration}" if json_logs else ""
        if options := f"{java_options} {logs}".strip():
            found[f"spark.{process}.extraJavaOptions"] = options
    # Not `spark.jars`: Spark fetches these by its file system, which is in one of the jars.
    found["spark.driver.extraClassPath"] = os.pathsep.join(str(jar) for jar in jars("spark"))
    found |= cluster_properties(settings, os.environ)
    found |= {
        "spark.app.name": NAME,
        "spark.master": settings.master,
        "spark.driver.memory": settings.memory,
    }
    return found


def collector(settings: JoinerSettings, environment: Mapping[str, str]) -> list[str]:
    """The options of Java for its collector: the serial one for a small heap of a local master, unless a
    variable chooses one, since Java refuses to start with two.
    """
    asked = " ".join(environment.get(name, "") for name in _OPTIONS_OF_JAVA)
    small = is_local(settings.master) and bytes_of(settings.memory) <= _LARGEST_SERIAL
    return [_SERIAL] if small and not _COLLECTOR.search(asked) else []


@contextmanager
def running_spark(
    settings: JoinerSettings,
    *,
    local_files: bool,
    java_properties: Mapping[str, str] | None = None,
    class_archive: Sequence[str] | None = None,
    jvm_seconds: float = JVM_SECONDS,
) -> Iterator[SparkSession]:
    """Spark, stopped together with its JVM at the end. The output of the JVM is forwarded to this process'
    log.

    `java_properties` are system properties of all JVMs; everybody on the machine can see them.
    `class_archive`: options of Java for an archive of classes, by default those of the set-up's archive. The
    JVM is killed if it takes longer than `jvm_seconds` to end.

    Raises UnavailableError if Spark doesn't start, and instead of any other error if its JVM has ended by
    itself.
    """
    log.info("starting Spark", master=settings.master)
    defined = [f"-D{name}={value}" for name, value in (java_properties or {}).items()]
    if class_archive is None:
        # Executors of a cluster have another class path than this JVM.
        class_archive = class_archives.options("spark") if is_local(settings.master) else ()
    archive = map(_quoted, class_archive)
    options = " ".join([JAVA_OPTIONS, *collector(settings, os.environ), *archive, *defined])
    with forwarded_logs() as stderr, _working_directory(settings) as directory, _home(settings):
        try:
            spark = session(settings, options, stderr, local_files=local_files, directory=directory)
        except TamisError:
            raise
        except Exception as error:
            # The errors of Py4J and PySpark have no common class. Of a Java error only its message matters.
            what = str(getattr(error, "java_exception", error)).partition("\n")[0]
            hint = (
                "look at the log before this line, and at TAMIS_JOINER_MASTER, TAMIS_JOINER_MEMORY, "
                "the disk of SPARK_LOCAL_DIRS (by default /tmp), the limit of open files, and the directory "
                "java.io.tmpdir, whose path may have at most 64 bytes, since sockets are made there"
            )
            raise UnavailableError(f"Spark doesn't start: {what}", hint=hint) from error
        gateway: Any = spark.sparkContext._gateway
        try:
            yield spark
        except Exception as error:
            # Without its JVM, Spark's errors are those of a connection. They don't name the cause.
            if (ended := _ended(gateway.proc)) is None:
                raise
            raise ended from error
        finally:
            stop(spark, jvm_seconds)


def _ended(jvm: subprocess.Popen[bytes]) -> UnavailableError | None:
    """The error of a JVM that has ended by itself; None if it runs. A JVM that has just been killed has a
    moment to end: its connections may be closed before.
    """
    try:
        code = jvm.wait(_ENDING_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
    return UnavailableError(f"Spark's JVM {how}", hint=KILLED_HINT)


def stop(spark: SparkSession, seconds: float = JVM_SECONDS) -> None:
    """Stop Spark together with its JVM, which is killed if it takes longer than some `seconds` to end. The
    process may start Spark again after that.
    """
    gateway: Any = spark.sparkContext._gateway
    process = gateway.proc
    if process.poll() is None:
        spark.stop()
    gateway.shutdown()
    # The JVM ends when its standard input is closed, and its Python workers end with it.
    process.stdin.close()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
    # PySpark keeps the gateway for the next session, also one to a JVM that has ended.
    SparkContext._gateway = SparkContext._jvm = None


def leave(code: int) -> None:
    """End this process at once. The JVM is killed: it could write to the next joiner's checkpoint."""
    gateway: Any = SparkContext._gateway
    if gateway is not None:
        gateway.proc.kill()
    os._exit(code)


def _quoted(option: str) -> str:
    """An option in quotes, if Spark would take it for several ones otherwise.

    >>> _quoted("-Da=b"), _quoted("-Da=b c")
    ('-Da=b', '"-Da=b c"')
    """
    return f'"{option}"' if " " in option else option


@contextmanager
def _home(settings: JoinerSettings) -> Iterator[None]:
    """A home of Spark with unzipped modules of Python, if all of Spark is of this installation."""
    if not is_local(settings.master) or _SPARK_HOME in os.environ:
        yield
        return
    with unzipped_home() as home:
        os.environ[_SPARK_HOME] = str(home)
        try:
            yield
        finally:
            del os.environ[_SPARK_HOME]


@contextmanager
def _working_directory(settings: JoinerSettings) -> Iterator[Path | None]:
    """The working directory of the JVM: with a packed environment, one with a stand-in for it."""
    if not settings.environment or is_local(settings.master):
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="tamis-joiner-") as name:
        contents.stand_in(Path(name))
        yield Path(name)
