"""The figures of document 003 as a hub's state: three sites, and what each was sent."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from streaming.core.state.agreement_state import AgreementState
from tests.checkpoints.written_state import START_S, WrittenState, agreement, replica, ruv

SITES = """
[hub]
name = "centre"
[kafka]
bootstrap_servers = "localhost:9092"
[[replicas]]
name = "boston_hub"
rid = 1
oid = "87f6265f.72d911d4.a5cd.00:01:80:c0:4b:e7"
host = "minuteman"
[[replicas]]
name = "bangalore"
rid = 2
host = "ramohalli"
[[replicas]]
name = "sanfran_hub"
rid = 3
oid = "0eaa6fc3.737d11d4.adbe.00:01:80:c0:4b:e7"
host = "goldengate"
[[tables]]
name = "t"
key = ["id"]
columns = { id = "int64" }
[[agreements]]
name = "to-bangalore"
consumer = "bangalore"
[[agreements]]
name = "to-sanfran"
consumer = "sanfran_hub"
"""

ROWS: tuple[Mapping[int, int], ...] = (
    {1: 709, 2: 653, 3: 221},
    {1: 800, 2: 653, 3: 400},
    {1: 912, 2: 653, 3: 504},
    {1: 912, 2: 653, 3: 504},
    {1: 950, 2: 653, 3: 504},
)
"""The hub's own row behind hub epochs 1 to 5; the fourth only refreshes rows."""


def at(name: str, consumer: int, sent: int, acked: int) -> AgreementState:
    """An agreement that was sent everything up to one hub epoch, and acknowledged another."""
    known = agreement(name, consumer, sent, ruv(r1=sent))
    return replace(known, acked_covers=acked, acked_ruv=ruv(r1=acked))


def of_document_003(config_file: Path, state: WrittenState, *, actual: int = 1) -> None:
    """Bangalore was sent hub epoch 1, sanfran_hub 4, of which it acknowledged `actual`."""
    config_file.write_text(SITES, encoding="utf-8")
    replicas = [replica(rid, covers=1) for rid in (1, 2, 3)]
    for epoch, row in enumerate(ROWS, 1):
        sanfran = at("to-sanfran", 3, min(epoch, 4), min(epoch, actual))
        agreements = [at("to-bangalore", 2, 1, 1), sanfran]
        at_ms = (START_S + epoch * 3_600) * 1000
        state.commit(epoch, epoch, ruv(r1=epoch), replicas, agreements, numbers=row, at_ms=at_ms)
