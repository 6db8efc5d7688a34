"""The private calls into pyspark, all of them: a new version of Spark may break only this file.

Each function does what pyspark's public one does inside, without a part that would cost too much
or that pyspark does not offer. No other module uses a name of pyspark that begins with `_`.
"""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors.exceptions.captured import unwrap_spark_exception
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType, _load_from_socket

from streaming.jvm.launch_files import launch_files
from streaming.jvm.pins import pinned_environment

DUMPED_S = 2.0
"""So long a JVM gets to write the stacks of its threads."""


def start_context(conf: SparkConf) -> None:
    """Start the JVM and Spark's context, unless this process has them.

    The JVM has a session of its own, so that a signal to the hub's process group (Ctrl-C, systemd's
    SIGTERM) does not end it under a batch; it ends when the hub's end of its standard input closes,
    also by a kill. The context would replace the handler of SIGINT.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        if SparkContext._gateway is None:  # noqa: SLF001
            SparkContext(conf=conf, gateway=_launched_gateway(conf))
        else:
            SparkContext.getOrCreate(conf)
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, handler)


def _launched_gateway(conf: SparkConf) -> Any:  # noqa: ANN401 - py4j has no types
    """A gateway to a new JVM, which is killed if its launch does not come to an end.

    pyspark itself would put every setting on the command line.

    Where a launch is cut off, pyspark removes the folder in which the JVM is about to announce
    itself: the JVM's main thread would die of that before it listens for the end of its standard
    input, and the others would stay for ever.
    """
    launched = list[subprocess.Popen[bytes]]()

    def popen(command: list[str], **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401
        options["env"] = pinned_environment(options["env"])
        submit, *rest = command
        launched.append(subprocess.Popen([submit, *arguments, *rest], **options))
        return launched[-1]

    launcher: Any = java_gateway
    launcher.Popen = popen
    try:
        with launch_files(dict(conf.getAll())) as arguments:
            return launcher.launch_gateway(None, {"start_new_session": True})
    except BaseException:
        for process in launched:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        raise
    finally:
        launcher.Popen = subprocess.Popen


def collect_batches(frame: DataFrame) -> Iterator[pa.RecordBatch]:
    """The frame's rows in any order, each Arrow batch as soon as its task is done.

    `DataFrame.toArrow` waits for the last batch and puts them in order.
    Raises PySparkException when the query fails.
    """
    serializer = ArrowCollectSerializer()  # type: ignore[no-untyped-call]
    port, secret, server = frame._jdf.collectAsArrowToPython()  # noqa: SLF001
    try:
        with _load_from_socket((port, secret), serializer) as stream:
            for part in stream:
                if isinstance(part, pa.RecordBatch):  # behind the last one comes their order
                    yield part
    except Exception:
        _join(server)  # raises the reason, where it is the query that failed
        raise
    _join(server)


def _join(server: Any) -> None:  # noqa: ANN401 - py4j has no types
    """Wait for the thread of the JVM that sends the batches; PySparkException if it failed."""
    with unwrap_spark_exception():
        server.getResult()


def map_batches(
    frame: DataFrame,
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: pa.Schema,
) -> DataFrame:
    """`DataFrame.mapInArrow` to a frame of `schema`, without importing pandas.

    The public method requires pandas, which pyarrow then loads: half a second in each process.
    """
    kind = PythonEvalType.SQL_MAP_ARROW_ITER_UDF
    udf = UserDefinedFunction(function, from_arrow_schema(schema), "map_batches", kind)
    column = udf(*(frame[name] for name in frame.columns))
    mapped = frame._jdf.mapInArrow(column._jc, False, None)  # noqa: FBT003, SLF001
    return DataFrame(mapped, frame.sparkSession)


def causes(error: Exception) -> list[str]:
    """The first line of an error and of each cause of it: of those in the JVM what Java says."""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        said = list[str]()
        while java is not None:
            said.append(java.toString())
            java = java.getCause()
    except (Py4JError, OSError):  # the JVM is gone, and its exception with it
        said = []
    return [text.strip().partition("\n")[0] for text in said or [str(error)]]


def innermost(error: Exception) -> str:
    """The innermost of these lines."""
    return causes(error)[-1]


def jvm(spark: SparkSession) -> Any:  # noqa: ANN401 - py4j has no types
    """The session's JVM: its classes are attributes, by their full name."""
    return spark.sparkContext._jvm  # noqa: SLF001


def parsed(spark: SparkSession, text: str) -> Any:  # noqa: ANN401 - py4j has no types
    """The plan of a statement, of which nothing is carried out; Py4JError if it is none."""
    return spark._jsparkSession.sessionState().sqlParser().parsePlan(text)  # noqa: SLF001


def hadoop_configuration(spark: SparkSession) -> Any:  # noqa: ANN401 - py4j has no types
    """The Hadoop `Configuration` of the session's driver, a Java object."""
    context: Any = spark.sparkContext
    return context._jsc.hadoopConfiguration()  # noqa: SLF001


def executor_count(spark: SparkSession) -> int:
    """How many executors are registered with the driver, which is none itself."""
    context: Any = spark.sparkContext
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1  # noqa: SLF001


def jvm_pid(spark: SparkSession) -> int:
    """The process id of the JVM that this Python started for the session."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    return int(gateway.proc.pid)


def kill_java(spark: SparkSession) -> None:
    """Kill the session's JVM, whatever state it is in."""
    with suppress(ProcessLookupError):
        os.kill(jvm_pid(spark), signal.SIGKILL)


def dump_java(spark: SparkSession) -> None:
    """Have the JVM write the stacks of its threads to its standard output, if it still can."""
    with suppress(ProcessLookupError):
        os.kill(jvm_pid(spark), signal.SIGQUIT)
        time.sleep(DUMPED_S)
