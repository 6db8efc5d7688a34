"""S3-compatible storage for tests: SeaweedFS, a real server that honours conditional PUTs.

    python -m tests.harness.s3_server

builds it into the cache, with Go, in some minutes, unless it is there. `make test-cluster` does so.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.fs as pafs

from checkpoints.root import remove_file, replace_file
from connectors.jars import cache_folder
from streaming.core.access.root import BucketRoot, S3Access
from tests.harness.hub_process import wait_until
from tests.harness.served_hub import free_port
from tests.harness.spark_cluster import HOST

BUCKET = "hub"
_KEY, _SECRET = "hubkey", "hubsecret"
_VERSION = "v0.0.0-20261109003541-7506e5f91cd6"
_MODULE = "github.com/seaweedfs/seaweedfs/weed"


def server_program() -> Path:
    """Where the server is: SLACKWATER_WEED, else the cache; the file need not exist."""
    given = os.environ.get("SLACKWATER_WEED")
    return Path(given) if given else cache_folder() / "bin" / "weed"


def build() -> None:
    """Build the server into the cache unless it is there; it needs Go and its module proxy."""
    place = server_program()
    if place.exists():
        return
    if not shutil.which("go"):
        sys.exit(
            "the tests of a state in a bucket need SeaweedFS, and there is no Go to build it:"
            " install Go, or name the program `weed` in SLACKWATER_WEED"
            " (.venv/bin/python -m pytest tests/cluster skips these tests)"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "go.mod").write_text("module s3server\n\ngo 1.26\n")
        for step in (["get", f"{_MODULE}@{_VERSION}"], ["build", "-o", place, _MODULE]):
            subprocess.run(["go", *step], cwd=folder, check=True)


@contextmanager
def s3_server(folder: Path) -> Iterator[S3Access]:
    """A running server with an empty bucket; it does not outlive the block."""
    folder.mkdir(parents=True)
    config, port = folder / "s3.json", free_port()
    keys = [{"accessKey": _KEY, "secretKey": _SECRET}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    identity = {"name": "hub", "credentials": keys, "actions": actions}
    config.write_text(json.dumps({"identities": [identity]}))
    ports = ("master.port", "volume.port", "filer.port")
    grpc = (f"{name}.grpc" for name in (*ports, "s3.port"))
    command = [
        *(str(server_program()), "-logtostderr=true", "server", f"-dir={folder}"),
        *(f"-ip={HOST}", f"-ip.bind={HOST}", "-filer", "-s3", f"-s3.config={config}"),
        *(f"-s3.port={port}", "-s3.port.iceberg=0", "-s3.port.lance=0"),
        *(f"-{name}={free_port()}" for name in (*ports, *grpc)),
        *("-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=20"),
    ]
    access = S3Access(f"http://{HOST}:{port}", "us-east-1", _KEY, _SECRET)
    with (folder / "server.log").open("wb") as log:
        server = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        wait_until(lambda: _takes_objects(access), lambda: "the storage takes an object")
        yield access
    finally:
        server.kill()
        server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _takes_objects(access: S3Access) -> bool:
    """Whether a PUT succeeds; the port answers many seconds earlier."""
    try:
        s3_files(access).create_dir(BUCKET)
        root = BucketRoot(BUCKET, "probe", access)
        replace_file(root, "probe", b"")
        remove_file(root, "probe")
    except OSError:
        return False
    return True


def s3_files(access: S3Access) -> pafs.S3FileSystem:
    """A client that may create the bucket."""
    return pafs.S3FileSystem(
        access_key=access.access_key_id,
        secret_key=access.secret_access_key,
        region=access.region,
        scheme="http",
        endpoint_override=(access.endpoint or "").removeprefix("http://"),
        allow_bucket_creation=True,
    )


if __name__ == "__main__":
    build()
    sys.stdout.write(f"{server_program()}\n")
