"""The hub's Spark query: how it starts, its scratch, and why it failed."""

import os
import re
import shutil
import tempfile
import time
from pathlib import Path

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from checkpoints.root import local_folder
from connectors.kafka.client_errors import fault_of
from streaming.core.access.root import StateRoot
from streaming.core.model.errors import HubError
from streaming.jvm.private import causes, innermost

STALE_CHECKPOINT_S = 86_400
ROOM_BYTES = 1_000_000
"""What must be free in the state root for a query to start."""


def start(writer: DataStreamWriter, checkpoint: Path, root: StateRoot) -> StreamingQuery:
    """Start a query whose scratch is this folder.

    HubError: Spark refuses, with its reason. OSError: the disk takes no file.
    """
    check_room(root)
    writer = writer.option("checkpointLocation", checkpoint.absolute().as_uri())
    try:
        return writer.start()
    except (Py4JJavaError, PySparkException) as error:
        check_room(root)
        raise HubError(f"Spark could not start to read: {innermost(error)}") from error


def failure(error: StreamingQueryException, root: StateRoot) -> HubError:
    """What ended the query, without the JVM's part of it; OSError if the state root takes no file.

    Spark's own error does not say that the disk is full, nor why a TLS handshake failed.
    """
    check_room(root)
    message = re.split(r"JVM stacktrace|=== Streaming Query ===", str(error))[0]
    fault = fault_of("\n".join([str(error), *causes(error)]))
    return HubError(f"{fault} ({message.strip()})" if fault else message.strip())


def check_room(root: StateRoot) -> None:
    """Raise OSError unless the disk of state or scratch takes a file of ROOM_BYTES."""
    with tempfile.TemporaryFile(dir=local_folder(root)) as file:
        file.write(bytes(ROOM_BYTES))
        file.flush()
        os.fsync(file.fileno())


def remove_stale(folder: Path) -> None:
    """Remove what hubs that were killed left of Spark's scratch."""
    if not folder.exists():
        return
    for one in folder.iterdir():
        if time.time() - one.stat().st_mtime > STALE_CHECKPOINT_S:
            shutil.rmtree(one, ignore_errors=True)
