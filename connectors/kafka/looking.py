"""A consumer that looks into a topic: it is in no group, and commits and creates nothing."""

from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer

from connectors.kafka.options import client_options


def looking_consumer(
    bootstrap: str,
    options: Mapping[str, str],
    **more: Any,  # noqa: ANN401 - what kafka-python takes
) -> KafkaConsumer:
    """The consumer, with more of kafka-python's own options; KafkaError if no broker answers."""
    return KafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        allow_auto_create_topics=False,
        fetch_max_wait_ms=1,
        **client_options(options),
        **more,
    )
