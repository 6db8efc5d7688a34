"""What Spark has put into a micro-batch, known before anything of it is read."""

import json

from pyspark.sql import SparkSession

from streaming.core.errors import SourceError


def end_offsets(spark: SparkSession, checkpoint: str, batch_id: int) -> dict[str, int]:
    """Topic -> the offset behind the micro-batch, from the log that Spark writes before it.

    SourceError when the log says nothing for Kafka. The file is read through Hadoop, so it may
    lie wherever the checkpoint does.
    """
    jvm = spark._jvm  # noqa: SLF001
    if jvm is None:
        raise SourceError("Spark's JVM is gone: run the hub again")
    path = jvm.org.apache.hadoop.fs.Path(f"{checkpoint}/offsets/{batch_id}")
    system = path.getFileSystem(spark._jsc.hadoopConfiguration())  # noqa: SLF001
    stream = system.open(path)
    try:
        text = bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()
    lines = [line for line in text.splitlines()[2:] if line.startswith("{")]
    if len(lines) != 1:
        raise SourceError(f"Spark's offset log {path} names no Kafka offsets: {text!r}")
    return {topic: partitions["0"] for topic, partitions in json.loads(lines[0]).items()}
