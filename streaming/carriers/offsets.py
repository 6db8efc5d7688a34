"""The offsets of a micro-batch, known before its records are read."""

import json
from pathlib import Path

from streaming.core.model.errors import SourceError


def end_offsets(checkpoint: Path, batch_id: int) -> dict[str, int]:
    """Topic -> the offset behind the micro-batch, from the log that Spark writes before it.

    SourceError when the log has no Kafka offsets.
    """
    path = checkpoint / "offsets" / str(batch_id)
    text = path.read_text(encoding="utf-8")
    lines = [line for line in text.splitlines()[2:] if line.startswith("{")]
    if len(lines) != 1:
        raise SourceError(f"Spark's offset log {path} names no Kafka offsets: {text!r}")
    return {topic: partitions["0"] for topic, partitions in json.loads(lines[0]).items()}
