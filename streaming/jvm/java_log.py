"""How Spark's JVM writes its log: beside the hub's own lines, on the same standard error."""

from pathlib import Path

_BESIDE = Path(__file__).parent
_TEXT = _BESIDE / "log4j2.properties"
_OVER_IT = _BESIDE / "log4j2_json.properties"
_LINE = _BESIDE / "log_line.json"


def text_log() -> dict[str, str]:
    """Java's system properties for lines that people read."""
    return {"log4j2.configurationFile": _TEXT.as_uri()}


def json_log(hub: str) -> dict[str, str]:
    """The same for lines that programs read: an object each, with the hub's name.

    `context` in it is what Spark's structured logging knows: the query, the batch, the executor.
    """
    return {
        "log4j2.configurationFile": f"{_TEXT.as_uri()},{_OVER_IT.as_uri()}",
        "slackwater.log.line": _LINE.as_uri(),
        "slackwater.hub": hub,
        "spark.log.structuredLogging.enabled": "true",
    }
