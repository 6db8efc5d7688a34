"""Earlier records, as far as their topics still have them."""

from collections.abc import Callable, Collection, Mapping, Sequence

from connectors.kafka.originals import read_records
from streaming.config.config import Config
from streaming.core.intake.input_lost import TopicFacts
from streaming.core.records.kept_bytes import KeptBytes
from streaming.hub.batch.settings import BatchSettings


def originals(
    config: Config,
    settings: BatchSettings,
    places: Sequence[tuple[int, int]],
    look: Callable[[Collection[str]], Mapping[str, TopicFacts]],
) -> dict[tuple[int, int], KeptBytes]:
    """(rid, offset) -> what is kept of that record; none that is gone or may not be read."""
    kafka, topics = config.kafka, settings.known_topics
    known = [place for place in places if place[0] in topics]
    now = look({topics[rid] for rid, _ in known})
    there = [
        (rid, offset)
        for rid, offset in known
        if now[topics[rid]].is_readable and now[topics[rid]].first <= offset < now[topics[rid]].end
    ]
    if not there:
        return {}
    allowed = settings.topology.record_bytes
    return read_records(kafka.bootstrap_servers, kafka.options, topics, there, allowed)
