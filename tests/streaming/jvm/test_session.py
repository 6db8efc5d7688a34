"""The session reads and writes what the hub needs, quietly, and leaves nothing behind."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from connectors.kafka.embedded.broker import Broker
from connectors.kafka.options import source_options
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import ensure_topics
from streaming.jvm.private import hadoop_configuration, jvm

ALONE = """
from streaming.jvm.private import jvm
from streaming.jvm.session import session
own = {"spark.sql.shuffle.partitions": "3", "spark.driver.memory": "700m",
       "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
spark = session("alone", own)
spark.range(3).groupBy("id").count().write.format("delta").save("table")
print(spark.conf.get("spark.sql.shuffle.partitions"))
print(spark.conf.get("spark.sql.session.timeZone"))
print(jvm(spark).java.lang.Runtime.getRuntime().maxMemory() // 2**20 < 800)
"""

FAILING = """
from contextlib import suppress
from pyspark.errors import PySparkException
from streaming.jvm.java_log import json_log
from streaming.jvm.session import started
with started("failing", {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"},
             json_log("centre")) as spark, suppress(PySparkException):
    spark.range(1).selectExpr("raise_error('two\\nlines')").collect()
"""

LONG_LIVED = """
import sys
from streaming.jvm.java import JavaError
from streaming.jvm.private import jvm
from streaming.jvm.session import started
own = {"spark.driver.memory": "700m", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"}
try:
    with started("long-lived", own) as spark:
        pools = jvm(spark).java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        print(sum(p.getUsage().getMax() >> 20 for p in pools if p.getName().startswith("Code")))
        sys.stdout.flush()
        jvm(spark).java.nio.ByteBuffer.allocate(1_000_000_000)
except JavaError:
    print("ended")
"""

REFUSED = """
import sys
from streaming.jvm.java import JavaError
from streaming.jvm.session import started
try:
    with started("refused", {sys.argv[1]: sys.argv[2]}):
        pass
except JavaError as error:
    print(error)
"""


def test_spark_reads_a_kafka_topic_with_times(
    spark: SparkSession, broker: Broker, topic_prefix: str
) -> None:
    """Source and client library come from the cache; both must fit this Spark and this broker."""
    topic = f"{topic_prefix}a"
    ensure_topics(broker.bootstrap_servers, {}, [topic], 1000)
    sink = UpdatesSink(broker.bootstrap_servers, {})
    for number in range(3):
        sink.send(topic, b"key", b"value %d" % number)
    sink.flush()
    sink.close()

    options = source_options(broker.bootstrap_servers, {"client.id": "test"})
    read = spark.read.format("kafka").options(**options).option("subscribe", topic).load()

    rows = read.orderBy("offset").collect()
    assert [bytes(row.value) for row in rows] == [b"value 0", b"value 1", b"value 2"]
    assert [row.timestampType for row in rows] == [0, 0, 0]


def test_spark_and_deltalake_write_one_table(spark: SparkSession, tmp_path: Path) -> None:
    """The hot path appends without Spark, the materializer merges with it."""
    table = str(tmp_path / "table")
    write_deltalake(table, pa.table({"id": [1]}))

    spark.sql("SELECT 2L AS id").write.format("delta").mode("append").save(table)
    write_deltalake(table, pa.table({"id": [3]}), mode="append")

    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == [1, 2, 3]
    assert spark.read.format("delta").load(table).count() == 3


def test_a_local_file_is_written_without_a_process(spark: SparkSession, tmp_path: Path) -> None:
    """Each micro-batch writes two; what Hadoop brings starts a chmod for each."""
    path = jvm(spark).org.apache.hadoop.fs.Path((tmp_path / "file").as_uri())
    files = path.getFileSystem(hadoop_configuration(spark))

    stream = files.create(path, False)  # noqa: FBT003 - Java
    stream.write(b"written")
    stream.close()

    assert "Naked" in files.getClass().getName()
    assert (tmp_path / "file").read_bytes() == b"written"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_session_is_quiet_leaves_nothing_and_takes_the_users_settings(tmp_path: Path) -> None:
    """A hub's own log is unreadable below Spark's greetings; folders of its own are a surprise."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert done.stdout.splitlines() == ["3", "UTC", "True"]
    assert [path.name for path in tmp_path.iterdir()] == ["table"]
    assert [line for line in done.stderr.splitlines() if "incubator" not in line] == []


@pytest.mark.more
@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("spark.sql.shuffle.partitions", "many", "INVALID_CONF_VALUE"),
        ("spark.driver.memory", "2 gigs", "Java gateway process exited"),
    ],
)
def test_an_option_that_spark_refuses_is_one_sentence(
    tmp_path: Path, name: str, value: str, says: str
) -> None:
    """Its own answer is a stack of Java's in a stack of Python's."""
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, name, value],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )

    (line,) = done.stdout.splitlines()
    assert says in line
    assert "the options in [spark]" in line


def test_sparks_lines_are_objects_where_a_program_reads_them(tmp_path: Path) -> None:
    """With the names that the hub's own have, and what Spark knows of the task."""
    done = subprocess.run(
        [sys.executable, "-c", FAILING], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    lines = [json.loads(one) for one in done.stderr.splitlines() if "incubator" not in one]
    failed = next(one for one in lines if "exception" in one)
    assert {one["hub"] for one in lines} == {"centre"}
    assert failed["level"] == "error"
    assert failed["timestamp"].endswith("Z")
    assert failed["event"].startswith("Exception in task")
    assert "two\nlines" in failed["exception"]
    assert "task_name" in failed["context"]


def test_java_has_room_for_code_and_ends_when_it_has_no_memory(tmp_path: Path) -> None:
    """Without either a thread of Spark's dies, and the hub waits for it and says that it runs."""
    done = subprocess.run(
        [sys.executable, "-c", LONG_LIVED], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    code_mib, end = done.stdout.splitlines()[0], done.stdout.splitlines()[-1]
    assert int(code_mib) > 200
    assert end == "ended"
