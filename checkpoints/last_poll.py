"""The running hub's last successful poll of its topics: one small file beside the tables.

An idle hub commits nothing, so the age of the last commit does not tell an idle hub from one that
is down. The file is scratch: no batch depends on it, and it may be removed at any time.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from checkpoints.root import read_file, replace_file
from streaming.core.model.root import StateRoot

FILE = "last_poll.json"


@dataclass(frozen=True, slots=True)
class LastPoll:
    """When a hub last reached Kafka, and where its topics ended.

    `hub`: the process, as in `epochs`. `ends`: topic -> the offset that its next record gets.
    `ended`: the hub ended in order at `at_ms`; one that was killed cannot say so.
    """

    hub: str
    at_ms: int
    ends: Mapping[str, int]
    ended: bool = False


def write_poll(root: StateRoot, poll: LastPoll) -> None:
    """Replace the file of this state root; a reader sees the old or the new one."""
    document = asdict(poll) | {"ends": dict(poll.ends)}
    replace_file(root, FILE, json.dumps(document).encode())


def read_poll(root: StateRoot) -> LastPoll | None:
    """The last poll; None if no hub of this version has polled yet, or the file is damaged."""
    try:
        found = json.loads(read_file(root, FILE))
        hub, at_ms, ends = str(found["hub"]), int(found["at_ms"]), dict(found["ends"])
        return LastPoll(hub, at_ms, ends, found.get("ended") is True)
    except (OSError, ValueError, KeyError, TypeError):
        return None
