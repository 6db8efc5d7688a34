"""The JVM's launch, when it is cut off."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.harness.hub_process import wait_until

LAUNCH = """
from pyspark import SparkConf
from streaming.hub.stopping import stop_signals
with stop_signals():
    from streaming.jvm.private import start_context
    start_context(SparkConf().setMaster("local[1]").setAppName("never"))
"""


def test_a_jvm_that_was_being_launched_ends_with_its_hub(tmp_path: Path) -> None:
    """It has not announced itself yet, so nothing but its process id is known of it."""
    script, announced = tmp_path / "bin" / "spark-submit", tmp_path / "pid"
    script.parent.mkdir()
    script.write_text(
        f"#!/bin/sh\necho $$ > {announced}.new\nmv {announced}.new {announced}\nexec sleep 600\n"
    )
    script.chmod(0o755)
    command = [sys.executable, "-c", LAUNCH]

    with subprocess.Popen(command, env={**os.environ, "SPARK_HOME": str(tmp_path)}) as hub:
        wait_until(announced.exists, lambda: "the JVM is launched")
        hub.send_signal(signal.SIGTERM)
        code = hub.wait()

    assert code == 0
    launched = Path(f"/proc/{announced.read_text().strip()}")
    assert not launched.exists()
