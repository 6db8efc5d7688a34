"""The SparkSession that the hub runs in, with the settings that its speed rests on."""

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import SparkConf
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from connectors.log_store import CLASS
from streaming.jvm.class_archive import archive, java_options
from streaming.jvm.class_path import class_path
from streaming.jvm.executor_python import shipped
from streaming.jvm.java import JavaError
from streaming.jvm.java_log import text_log
from streaming.jvm.master import LOCAL, is_local_master
from streaming.jvm.pins import pinned
from streaming.jvm.private import hadoop_configuration, innermost, jvm, start_context

_BESIDE = Path(__file__).parent

_JAVA_OPTIONS = ("spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions")
"""A user's; Spark puts them behind the default ones, and the last option counts."""

_ALWAYS_ON = "-XX:ReservedCodeCacheSize=240m -XX:+ExitOnOutOfMemoryError"
"""A JVM with one compiler has 48 MB for compiled code, which Spark's generated classes fill within
minutes; without space or memory a thread of Spark's dies and its query hangs. So the code cache is
larger, and the JVM exits on out-of-memory.
"""

_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "1",  # 50 by default: seconds for a tiny table
    "spark.delta.logStore.file.impl": CLASS,
    # 10,000 by default, a task each: VACUUM takes most of a minute for a table without files
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "8",
}

_MICRO_BATCHES = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.adaptive.enabled": "false",
    "spark.scheduler.mode": "FAIR",  # a batch does not queue behind the maintenance
    "spark.scheduler.allocation.file": _BESIDE.joinpath("fairscheduler.xml").as_uri(),
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
    # a fifth of a second a batch on a local disk, against the default's rename of each log file
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.session.timeZone": "UTC",
    # what is kept of each job for Spark's pages: 1,000 jobs, and their plans at full length
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "20",
    "spark.ui.retainedStages": "20",
    "spark.ui.retainedTasks": "200",
}

_LOCAL_FILES = "com.globalmentor.apache.hadoop.fs.NakedLocalFileSystem"

_DRIVER = {
    "spark.driver.memory": "2g",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}

_ONE_MACHINE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def session(
    app: str, extra: Mapping[str, str] | None = None, log: Mapping[str, str] | None = None
) -> SparkSession:
    """A started session; `extra` overrides every other setting, `log` is of `java_log`.

    Nothing is resolved at the start: the jars come from the cache (JarsError if it lacks them).
    """
    settings = settings_of_session(extra or {}, log)
    conf = SparkConf().setAppName(app).setAll(list(settings.items()))
    for name in _JAVA_OPTIONS:
        conf.set(name, pinned(conf.get(name, "")))
    start_context(conf)
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    spark.conf.get("spark.sql.shuffle.partitions")  # only now does Spark parse the options of SQL
    spark.sparkContext.pythonExec = settings.get("spark.pyspark.python", sys.executable)
    _write_files_without_chmod(spark)
    return spark


def settings_of_session(
    extra: Mapping[str, str], log: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Spark's settings, by their full names; those of `extra` come last."""
    log_options = " ".join(f"-D{name}={value}" for name, value in (log or text_log()).items())
    jars = {"spark.jars": ",".join(jar.as_uri() for jar in class_path())}
    java = {
        "spark.driver.defaultJavaOptions": f"{log_options} {_ALWAYS_ON} {java_options(archive())}"
    }
    common = {"spark.master": LOCAL, **_DRIVER, **_MICRO_BATCHES, **_DELTA, **jars, **java}
    return {**common, **_redaction(extra), **_place(extra), **extra}


def _place(extra: Mapping[str, str]) -> Mapping[str, str]:
    """What follows from where Spark is: in this process, or on a cluster."""
    if is_local_master(extra.get("spark.master", LOCAL)):
        return _ONE_MACHINE
    java = {"spark.executor.defaultJavaOptions": _ALWAYS_ON}
    return java if "spark.pyspark.python" in extra else {**java, **shipped()}


def _redaction(own: Mapping[str, str]) -> dict[str, str]:
    """By which Spark's pages and its event log hide every value that a user has set."""
    of_java = (name for text in own.values() for name in re.findall(r"(?:^|\s)-D([^=\s]+)=", text))
    names = {*own, *(name.removeprefix("spark.hadoop.") for name in own), *of_java}
    set_here = "|".join(re.escape(name) for name in sorted(names))
    return {"spark.redaction.regex": f"(?i)secret|password|token|access[.]?key|^({set_here})$"}


@contextmanager
def started(
    app: str, extra: Mapping[str, str], log: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """A session for as long as the block takes.

    JavaError: Spark does not start with these settings, or its JVM ends meanwhile.
    """
    try:
        spark = session(app, extra, log)
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise JavaError(
            f"Spark does not start: {innermost(error)}; see the lines above, and the options in"
            " [spark] of the configuration"
        ) from error
    try:
        yield spark
    except (ConnectionError, Py4JNetworkError) as error:
        raise JavaError(
            f"Spark's Java process is gone ({error}): see the lines above or the system's log "
            "for the cause (memory, an operator); start the hub again: nothing is lost, it resumes "
            "where it stopped"
        ) from error
    finally:
        with suppress(ConnectionError, Py4JError):
            spark.stop()


def _write_files_without_chmod(spark: SparkSession) -> None:
    """Hadoop's local files start a chmod for each file written: 12 ms, twice a micro-batch.

    Only now has the JVM the class that leaves that out. Executors are told with each task, and get
    the class with the jars. Hadoop keeps what is opened first, so a file system is opened here: a
    thread of Spark's that has an older configuration would have everybody use the other class.
    """
    hadoop, configuration = jvm(spark).org.apache.hadoop.fs, hadoop_configuration(spark)
    configuration.set("fs.file.impl", _LOCAL_FILES)
    hadoop.FileSystem.closeAll()
    hadoop.Path("file:///").getFileSystem(configuration)
