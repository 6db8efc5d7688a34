"""A state in a bucket: Spark and deltalake commit to one table, and neither loses a commit."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkpoints.commit.faults import FaultPoint
from checkpoints.reading.reader import open_state
from connectors.kafka.embedded.broker import Broker
from streaming.core.access.root import S3Access
from tests.harness.command_lines import command_lines
from tests.harness.hub_process import KILLED
from tests.harness.s3_server import BUCKET, s3_server, server_program
from tests.harness.site import Site, site
from tests.model.replica import image, row_of

RACE = """
import json, sys, threading
import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from checkpoints.root import storage_options, table_uri
from streaming.core.access.root import BucketRoot, S3Access
from streaming.jvm.bucket import bucket_settings
from streaming.jvm.session import session

root = BucketRoot(sys.argv[1], sys.argv[2], S3Access(*json.loads(sys.argv[3])))
rounds, uri, options = int(sys.argv[4]), table_uri(root, "race"), storage_options(root)
spark = session("race", bucket_settings(root))
write_deltalake(uri, pa.table({"n": pa.array([-1], pa.int64())}), storage_options=options)
committed = {-1}

def by_deltalake():
    for n in range(rounds):
        try:
            rows = pa.table({"n": pa.array([n], pa.int64())})
            write_deltalake(uri, rows, mode="append", storage_options=options)
        except DeltaError:
            continue
        committed.add(n)

other = threading.Thread(target=by_deltalake)
other.start()
for n in range(rounds, 2 * rounds):
    try:
        rows = spark.range(n, n + 1, 1, 1).selectExpr("id AS n")
        rows.write.format("delta").mode("append").save(uri)
    except (Py4JJavaError, PySparkException):
        continue
    committed.add(n)
other.join()
found = DeltaTable(uri, storage_options=options).to_pyarrow_table()["n"].to_pylist()
print(json.dumps([sorted(found), sorted(committed)]))
spark.stop()
"""
ROUNDS = 10


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Access]:
    """The storage, with an empty bucket."""
    if not server_program().exists():
        pytest.skip("no S3-compatible server: python -m tests.harness.s3_server builds one")
    with s3_server(tmp_path_factory.mktemp("s3") / "server") as access:
        yield access


@pytest.fixture
def at(tmp_path: Path, broker: Broker, topic_prefix: str, storage: S3Access) -> Iterator[Site]:
    """A hub of two replicas with its state in the bucket."""
    with site(tmp_path, broker.bootstrap_servers, topic_prefix) as made:
        text = made.file.read_text().replace('"state"', f'"s3://{BUCKET}/{topic_prefix}state"')
        section = "".join(
            f'{name} = "{getattr(storage, name)}"\n'
            for name in ("endpoint", "region", "access_key_id", "secret_access_key")
        )
        made.file.write_text(f"{text}\n[s3]\n{section}")
        for replica in made.replicas.values():
            replica.hello()
        yield made


def test_no_commit_of_spark_or_deltalake_is_lost(storage: S3Access) -> None:
    """With Delta's own log store the later of two commits replaces the first, and says nothing."""
    access = [storage.endpoint, storage.region, storage.access_key_id, storage.secret_access_key]

    done = subprocess.run(
        [sys.executable, "-c", RACE, BUCKET, "race", json.dumps(access), str(ROUNDS)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    found, committed = json.loads(done.stdout.splitlines()[-1])
    assert found == committed
    assert len(committed) > ROUNDS


def test_a_hub_resumes_from_a_state_in_a_bucket(at: Site) -> None:
    """A machine that is lost takes nothing with it."""
    a, b = at.replicas["a"], at.replicas["b"]
    a.write("row", "first")
    with at.hub(fault=f"{FaultPoint.AFTER_CHANGELOG}:1") as hub:
        hub.ends_with(KILLED)
    b.write("other", "second")

    with at.hub("--available-now") as hub:
        hub.ends_with(0)

    for replica in (a, b):
        replica.catch_up()
        assert replica.rows == {
            row_of("row"): image("row", "first"),
            row_of("other"): image("other", "second"),
        }
    commit = open_state(at.config().hub.state).commit
    assert commit is not None
    assert not at.state.exists()


def test_the_key_of_a_bucket_is_nowhere_else(at: Site, storage: S3Access) -> None:
    """Whoever lists processes, or reads the log, the tables or an answer, could write the state."""
    at.replicas["a"].write("row", "first")
    with command_lines() as lines, at.hub("--available-now") as hub:
        hub.ends_with(0)
        said = hub.output
    asked = [at.slackwater(*words.split()) for words in ("status", "doctor", "config check")]
    stored = open_state(at.config().hub.state).configs()

    secret = storage.secret_access_key
    assert secret
    assert any(b"SparkSubmit" in line for line in lines)
    assert stored
    assert secret.encode() not in b"".join(lines)
    found = {"log": said, "answers": str(asked), "table config": str(stored)}
    assert {where for where, text in found.items() if secret in text} == set()


def test_a_state_is_copied_in_the_bucket_and_made_of_the_copy(
    at: Site, topic_prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who keeps the state there keeps its copies there; a folder `s3:` would be on some disk."""
    a, b = at.replicas["a"], at.replicas["b"]
    a.write("row", "before the copy")
    with at.hub("--available-now") as hub:
        hub.ends_with(0)
    monkeypatch.chdir(tmp_path)
    place = f"s3://{BUCKET}/{topic_prefix}copy"
    made = at.slackwater("backup", place)

    monkeypatch.setenv("SLACKWATER_HUB__STATE", f"s3://{BUCKET}/{topic_prefix}restored")
    assert at.slackwater("restore", place)["rows"] == made["rows"]
    b.write("other", "behind the copy")
    with at.hub("--available-now") as hub:
        hub.ends_with(0)

    for replica in (a, b):
        replica.catch_up()
    assert a.rows == b.rows
    assert len(a.rows) == 2
    assert not (tmp_path / "s3:").exists()
