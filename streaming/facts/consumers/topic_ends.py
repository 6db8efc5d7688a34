"""Where the topics end, asked of Kafka once."""

from dataclasses import dataclass, field

from streaming.config.config import Config
from streaming.core.model.errors import SourceError
from streaming.facts.consumers.level import Ends

CONNECT_MS = 3_000


@dataclass(slots=True)
class TopicEnds:
    """Where the hub's topics ended when Kafka first answered."""

    known: dict[str, int] = field(default_factory=dict)

    def ask(self, config: Config) -> Ends:
        """The ends, or why Kafka does not answer."""
        from connectors.kafka.topics import Topics  # noqa: PLC0415  # its import takes time

        kafka = config.kafka
        names = [config.changes_topic(replica.name) for replica in config.replicas]
        try:
            if not self.known.keys() >= set(names):
                with Topics(kafka.bootstrap_servers, kafka.options, CONNECT_MS) as topics:
                    self.known = topics.end_offsets(names)
        except SourceError as error:
            return str(error)
        return self.known
