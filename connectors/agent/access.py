"""How an agent reaches Kafka: with its options as they are now, and with which rights."""

from dataclasses import dataclass
from typing import Any

from connectors.agent.settings import AgentSettings
from connectors.kafka.options import LiveOptions, client_options, principal_of
from connectors.kafka.topics import Topics
from streaming.core.access.rights import REMEDY, agent_rights, lacking, lacking_text
from streaming.core.model.errors import HubError

REQUEST_MS = 5_000
"""How long one request to a broker may take before it counts as unreachable."""


@dataclass(frozen=True, slots=True)
class KafkaAccess:
    """What an agent's clients of Kafka are opened with."""

    settings: AgentSettings
    options: LiveOptions

    @property
    def principal(self) -> str:
        """Whom the broker takes the agent for; "" if only the broker knows."""
        return principal_of(self.options.now())

    def client(self) -> dict[str, Any]:
        """What every client of kafka-python is given."""
        return {
            "bootstrap_servers": self.settings.bootstrap_servers,
            "bootstrap_timeout_ms": REQUEST_MS,
            "allow_auto_create_topics": False,
            "metrics_enabled": False,
            **client_options(self.options.now()),
        }

    def refused(self) -> str:
        """Which rights Kafka refuses the agent, and what to do; "": none, or it does not say."""
        sent = self.settings.updates_topic
        needed = agent_rights(self.settings.changes_topic, [sent] if sent else [])
        try:
            with Topics(self.settings.bootstrap_servers, self.options.now(), REQUEST_MS) as topics:
                found = lacking(needed, topics.allowed(sorted({one.topic for one in needed})))
        except HubError:
            return ""
        return f"{lacking_text(found, self.principal)}: {REMEDY}" if found else ""
