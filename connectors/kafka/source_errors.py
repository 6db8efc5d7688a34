"""What kafka-python raises, as an error of the hub's own."""

from collections.abc import Iterator
from contextlib import contextmanager

from kafka.errors import KafkaError

from connectors.kafka.client_errors import LoggedFault
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
