"""The updates topics as the hub writes them; its connection is renewed if one is made anew."""

from collections.abc import Callable, Collection, Mapping

from connectors.kafka.sink import UpdatesSink
from streaming.config.config import Config
from streaming.core.intake.input_lost import TopicFacts

Look = Callable[[Collection[str]], Mapping[str, TopicFacts]]
"""Looks at topics: topic -> how it is now."""


class UpdatesTopics:
    """The updates topics; `ids`: topic -> the id that it had when it was last looked at."""

    def __init__(self, config: Config, ids: Mapping[str, str], look: Look) -> None:
        self._config = config
        self._look = look
        names = [config.updates_topic(agreement.name) for agreement in config.agreements]
        self._ids = {name: ids[name] for name in names}
        self._sink = self._connected()

    def _connected(self) -> UpdatesSink:
        kafka = self._config.kafka
        return UpdatesSink(kafka.bootstrap_servers, kafka.options)

    def send(self, agreement: str, key: str, value: bytes) -> None:
        """Hand a record over."""
        self._sink.send(self._config.updates_topic(agreement), key.encode(), value)

    def flush(self) -> frozenset[str]:
        """Wait until everything is delivered; the agreements whose topics refused something.

        HubError if something cannot be delivered for another reason.
        """
        refused = self._sink.flush()
        names = [one.name for one in self._config.agreements]
        return frozenset(one for one in names if self._config.updates_topic(one) in refused)

    def renew(self) -> bool:
        """Connect anew if a topic was made anew since; whether one was."""
        now = self._look(self._ids)
        is_other = any(one.id and one.id != self._ids[topic] for topic, one in now.items())
        self._ids |= {topic: one.id for topic, one in now.items() if one.is_readable or one.id}
        if is_other:
            self.close()
            self._sink = self._connected()
        return is_other

    def close(self) -> None:
        """Close the connection."""
        self._sink.close()
