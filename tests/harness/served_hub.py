"""A hub in this process that serves what it shows of itself, and a client of its port."""

import http.client
import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from pyspark.sql import SparkSession

from streaming.hub.observe.served import served
from streaming.hub.observe.view import HubView
from streaming.hub.service import Service
from tests.harness.hub_process import wait_until
from tests.harness.site import RunningHub, Site

TIMEOUT_S = 60
Labels = frozenset[tuple[str, str]]


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer over HTTP."""

    code: int
    type: str
    text: str

    @property
    def document(self) -> Any:  # noqa: ANN401 whatever JSON it is
        """The text as JSON."""
        return json.loads(self.text)


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event."""

    kind: str
    id: int | None
    document: Any


def _events(lines: Iterable[str]) -> Iterator[Event]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "data" in fields:
            id_ = int(fields["id"]) if "id" in fields else None
            yield Event(fields["event"], id_, json.loads(fields["data"]))
        fields = {}


@dataclass(frozen=True, slots=True)
class Port:
    """The port that a hub serves at; `token`: of whoever asks."""

    number: int
    token: str = ""

    def get(self, path: str, accept: str = "*/*") -> Answered:
        """Ask for a path."""
        url = f"http://127.0.0.1:{self.number}{path}"
        request = urllib.request.Request(url, headers={"accept": accept, **self._login()})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                text = answer.read().decode()
                return Answered(answer.status, answer.headers["content-type"], text)
        except urllib.error.HTTPError as error:
            return Answered(error.code, error.headers["content-type"], error.read().decode())

    @contextmanager
    def events(self, last: int | None = None) -> Iterator[Iterator["Event"]]:
        """The server-sent events from now on, or behind the last one that a client knows."""
        client = http.client.HTTPConnection("127.0.0.1", self.number, timeout=TIMEOUT_S)
        after = {} if last is None else {"last-event-id": str(last)}
        client.request("GET", "/events", headers={**after, **self._login()})
        answer = client.getresponse()
        assert answer.status == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        try:
            yield _events(line.decode().rstrip("\n") for line in answer)
        finally:
            client.close()

    def _login(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"} if self.token else {}

    def names(self) -> dict[str, int]:
        """Metric -> how many values it has, of all that are ours."""
        families = text_string_to_metric_families(self.get("/metrics").text)
        found = {
            f"{one.name}_total" if one.type == "counter" else one.name: len(one.samples)
            for one in families
        }
        return {name: count for name, count in found.items() if name.startswith("slackwater_")}

    def values(self, name: str) -> dict[Labels, float]:
        """The values of a metric by their labels."""
        families = text_string_to_metric_families(self.get("/metrics").text)
        samples = (sample for family in families for sample in family.samples)
        return {frozenset(s.labels.items()): s.value for s in samples if s.name == name}

    def value(self, name: str, **labels: str) -> float:
        """The sum of the values of a metric that have these labels."""
        wanted = set(labels.items())
        return sum(value for of, value in self.values(name).items() if wanted <= of)


@dataclass(frozen=True, slots=True)
class ServedHub(RunningHub):
    """A hub at work, and its port."""

    port: Port

    def reads_its_tables(self) -> None:
        """Wait until it knows what only the tables know."""
        wait_until(
            lambda: bool(self.port.values("slackwater_state_free_bytes")), lambda: "tables are read"
        )


@contextmanager
def serving(
    at: Site, spark: SparkSession, port: int | None = None, **hub: object
) -> Iterator[ServedHub]:
    """A hub of this site at work in a thread, served at a port; `hub`: other settings."""
    port, end = port or free_port(), threading.Event()
    config = at.config()
    served_at = config.http.model_copy(update={"port": port})
    changed = config.hub.model_copy(update=hub)
    view = HubView(config.model_copy(update={"http": served_at, "hub": changed}))
    with served(view), ThreadPoolExecutor(1) as pool:
        work = pool.submit(Service(view.config, spark, view=view).run, end)
        try:
            yield ServedHub(at, work, Port(port))
        finally:
            end.set()
        work.result()
