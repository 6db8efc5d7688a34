"""What kafka-python raises, as an error of the hub's own; and a connection that raises so."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

from kafka import KafkaAdminClient
from kafka.errors import KafkaError

from connectors.kafka.client_errors import LoggedFault
from connectors.kafka.options import client_options
from streaming.core.model.errors import SourceError


@contextmanager
def source_errors(bootstrap: str, asked: str = "") -> Iterator[None]:
    """Raise kafka-python's errors as a SourceError that names the broker and the remedy.

    `asked`: for what, as ` for offset 3 of t`.
    """
    with LoggedFault() as logged:
        try:
            yield
        except KafkaError as error:
            raise SourceError(
                f"Kafka at {bootstrap} did not answer as expected{asked}"
                f" ({logged.explained(error)}): check that it runs, kafka.bootstrap_servers, and"
                " the rights of the hub's user"
            ) from error


class AdminConnection:
    """An open connection of kafka-python's administrator; SourceError if no broker answers."""

    def __init__(
        self,
        bootstrap: str,
        options: Mapping[str, str],
        **more: Any,  # noqa: ANN401 - what kafka-python takes
    ) -> None:
        self._bootstrap = bootstrap
        with source_errors(bootstrap):
            self._admin = KafkaAdminClient(
                bootstrap_servers=bootstrap, **client_options(options), **more
            )

    def close(self) -> None:
        """Close the connection."""
        self._admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
