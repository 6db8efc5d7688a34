"""What nodes need: Java and Spark, and nothing of the hub's."""

import json
import subprocess
import sys
from pathlib import Path

from tests.harness.spark_cluster import EXECUTOR_MEMORY, HOST, SparkCluster

ASK = """
import json, sys
from streaming.jvm.private import jvm, hadoop_configuration
from streaming.jvm.session import session
spark = session("nodes", json.loads(sys.argv[1]))

def told(_):
    import os, sys, numpy, pyarrow, streaming.carriers.parse as ours
    yield [os.getcwd(), sys.executable, numpy.__file__, pyarrow.__file__, ours.__file__]

found = spark.sparkContext.parallelize(range(2), 2).mapPartitions(told).collect()
spark.range(20).repartition(2).write.format("delta").save(sys.argv[2])
print(json.dumps(found))
spark.stop()
"""


def test_executors_run_on_what_was_shipped(cluster: SparkCluster, tmp_path: Path) -> None:
    """The workers' path has no Python at all; files are written without a process for each."""
    options = {
        "spark.master": cluster.address,
        "spark.driver.host": HOST,
        "spark.executor.memory": EXECUTOR_MEMORY,
    }
    table = tmp_path / "table"

    done = subprocess.run(
        [sys.executable, "-c", ASK, json.dumps(options), str(table)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    for folder, *files in json.loads(done.stdout.splitlines()[-1]):
        assert folder.startswith(str(cluster.folder))
        assert all(file.startswith((folder, "./")) for file in files), files
    written = list(table.glob("*.parquet"))
    assert len(written) == 2
    assert not list(table.glob(".*.crc"))
