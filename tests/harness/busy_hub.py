"""A hub under a workload that has something of everything a page or a metric can show."""

from tests.harness.served_hub import ServedHub
from tests.harness.site import Site


def say_hello(at: Site, hub: ServedHub) -> None:
    """Let all replicas begin, and be level."""
    replicas = list(at.replicas.values())
    for one in replicas:
        one.hello()
    hub.brings(*replicas)


def collide(at: Site, hub: ServedHub, row: str) -> None:
    """Let the first two replicas write a row at once, and be level; the third one stays behind."""
    a, b, *_ = at.replicas.values()
    for one in (a, b):
        one.write("contended", f"{one.name}{row}")
    hub.takes(a, b)
    hub.brings(a, b)


def spoil(at: Site, hub: ServedHub) -> None:
    """Send a record twice, one that is no JSON, and changes that stay open."""
    a, b, *_ = replicas = list(at.replicas.values())
    a.publish(a.published[-1])
    b.send_bytes(b"no JSON")
    b.write("open", "b", inside="open")
    a.write("waits", "a", inside="early")
    a.write("for it", "a")
    hub.takes(*replicas)
