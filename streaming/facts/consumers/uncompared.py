"""Why the rows of a consumer are not compared, though its agreement has a section `compare`."""

from checkpoints.commit.lock import read_lock
from checkpoints.reading.reader import Reader
from streaming.config.config import Config
from streaming.core.text.wording import as_duration
from streaming.facts.consumers.compared import RecordedRounds
from streaming.facts.names import serving

GRACE_S = 3_600
"""Rounds may take so long, whatever their interval is."""


def uncompared(config: Config, reader: Reader, rounds: RecordedRounds) -> dict[str, str]:
    """Agreement -> why its last round failed, or for how long none has ended beside this hub.

    Rounds follow each other, so none is late before twice the time that all of them took last.
    """
    served = [one for one in serving(config, reader).agreements if one.compare is not None]
    if not served:
        return {}
    lock = read_lock(reader.root)
    took_s = sum(one.seconds for one, _ in rounds.ended.values())
    found: dict[str, str] = {}
    for one in served:
        ended_s = rounds.ended[one.name][1].timestamp() if one.name in rounds.ended else 0.0
        silent_s = rounds.read_s - max(ended_s, lock.since_ms / 1000)
        every_s = one.compare.every_s if one.compare is not None else 0
        if one.name in rounds.failed:
            found[one.name] = rounds.failed[one.name]
        elif lock.is_held and silent_s > max(2 * every_s, 2 * took_s, GRACE_S):
            found[one.name] = f"no round has ended for {as_duration(silent_s)}"
    return found
