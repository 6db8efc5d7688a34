"""The class data archive of Spark's JVM: written once by setup, mapped by every session after.

Half of a hub's start is the loading and checking of some twenty thousand classes. The
classes that a small hub has loaded are written to one file, and a JVM that maps it starts seconds
earlier. The JVM itself checks whether the file fits its jars; if not, it starts without it.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from connectors.jar_fetch import setup_step
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.sink import UpdatesSink
from connectors.kafka.topics import ensure_topics
from connectors.wire import encode
from streaming.core.model.change import Change, Op
from streaming.core.model.csn import CsnParts, format_csn
from streaming.core.model.errors import HubError
from streaming.core.model.ruv import NOTHING_KNOWN
from streaming.core.records.record import Hello
from streaming.jvm.class_path import class_path
from streaming.jvm.java import find_java

_CONFIG = """\
[hub]
state = "{folder}/state"
topic_prefix = ""

[kafka]
bootstrap_servers = "{bootstrap}"

[http]
port = 0

[limits]
materialize_every_epochs = 1

[[tables]]
name = "t"
key = ["k"]
columns = {{ k = "text" }}

[[replicas]]
name = "a"
rid = 1

[[agreements]]
name = "a"
consumer = "a"

[spark]
"spark.driver.extraJavaOptions" = "-XX:ArchiveClassesAtExit={archive}"
"""

_TOPIC = "changes.a"

_ANY_HOST = {"SPARK_LOCAL_IP": "127.0.0.1"}
"""Spark otherwise looks its host's name up, which has no address where an image is built."""


TOLD_EVERY_S = 5.0
"""How often setup says that it is still at work."""


class ArchiveError(HubError):
    """The archive could not be written."""


def archive() -> Path:
    """Where this environment's archive for its present Java is; the file need not exist."""
    java = find_java().resolve()
    versions = repr((java, java.stat().st_mtime_ns, class_path()))
    mark = hashlib.sha256(versions.encode()).hexdigest()[:8]
    return Path(sys.prefix) / "share" / "slackwater" / f"spark-classes-{mark}.jsa"


def java_options(file: Path) -> str:
    """The options with which a JVM maps an existing archive, and ignores one that does not fit."""
    quiet = "-Xlog:cds=off -Xlog:cds+dynamic=off"
    return f"-XX:SharedArchiveFile={file} -Xshare:auto {quiet}" if file.exists() else ""


def write() -> None:
    """Run a hub of one change and archive the classes that it loaded; ArchiveError if it fails."""
    place = archive()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as name:
        folder = Path(name)
        fresh, config = folder / place.name, folder / "hub.toml"
        with Broker.start(folder / "broker") as broker:
            bootstrap = broker.bootstrap_servers
            config.write_text(
                _CONFIG.format(folder=folder, bootstrap=bootstrap, archive=fresh), encoding="utf-8"
            )
            _publish_input(bootstrap)
            command = [sys.executable, "-m", "streaming.cli.main", "run", "--available-now"]
            code, said = run_and_tell([*command, "--config", str(config)], _tell)
        changes = list((folder / "state" / "changelog").glob("*.parquet"))
        if code or not fresh.exists() or not changes:
            tail = said.strip()[-2000:]
            raise ArchiveError(f"the hub that loads the classes failed:\n{tail}")
        fresh.rename(place)
    for older in set(place.parent.glob("*.jsa")) - {place}:  # of another Java, or of other jars
        older.unlink()


def run_and_tell(
    command: list[str], tell: Callable[[str], None], every_s: float = TOLD_EVERY_S
) -> tuple[int, str]:
    """Run a command, and tell every few seconds for how long; its exit code and its output."""
    began_s = time.monotonic()
    with subprocess.Popen(
        command,
        env={**os.environ, **_ANY_HOST},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    ) as process:
        while True:
            try:
                said, _ = process.communicate(timeout=every_s)
            except subprocess.TimeoutExpired:
                tell(f"still at work after {time.monotonic() - began_s:.0f} s")
            else:
                return process.returncode, said


def _publish_input(bootstrap: str) -> None:
    """Publish a hello and one change to the topic of the one replica."""
    ensure_topics(bootstrap, {}, [_TOPIC], 1_000_000)
    sink = UpdatesSink(bootstrap, {})
    hello = Hello(1, 0, 0, NOTHING_KNOWN, None, lost=False)
    row = '{"k":"1"}'
    change = Change(format_csn(CsnParts(1, 0, 1, 0)), 1, 1, "t", row, Op.INSERT, row, opno=1)
    for record in (hello, change):
        sink.send(_TOPIC, b"", encode("1", record))
    sink.flush()
    sink.close()


def write_once() -> None:
    """Write the archive unless it is there; ArchiveError if it fails."""
    if not archive().exists():
        _tell("making Spark's start quick (once, half a minute; longer on a machine at work)")
        write()


def _tell(text: str) -> None:
    sys.stdout.write(f"setup: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(setup_step(write_once))
