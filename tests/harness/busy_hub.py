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
    """Send a record twice, and one that is no JSON."""
    a, b, *_ = at.replicas.values()
    a.publish(a.published[-1])
    b.send_bytes(b"no JSON")
    hub.takes(a, b)


def fall_behind(at: Site, hub: ServedHub) -> None:
    """Let the first two collide once more, and bring them nothing: the second has lost unknown."""
    a, b, *_ = at.replicas.values()
    for one in (a, b):
        one.write("contended", f"{one.name} last")
        hub.takes(one)


def leave_open(at: Site, hub: ServedHub) -> None:
    """Begin transactions that stay open: what the first two write from now on waits."""
    a, b, *_ = at.replicas.values()
    b.write("open", "b", inside="open")
    a.write("waits", "a", inside="early")
    a.write("for it", "a")
    hub.takes(a, b)
