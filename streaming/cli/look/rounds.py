"""`compare --continuous`: each consumer compared with the hub, round after round, beside a hub."""

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from checkpoints.config import store_comparison
from checkpoints.store import StateStore
from streaming.compare.rounds import compared_consumer
from streaming.compare.run import Pace, Waiting
from streaming.compare.sides import ComparedSide, side_named
from streaming.config.config import Config
from streaming.config.sections import AgreementConfig
from streaming.core.model.errors import ConfigError, HubError
from streaming.core.text.wording import as_count
from streaming.facts.consumers.compared import ComparedRound
from streaming.terminal.output import write_error, write_json, write_sentence


@dataclass(frozen=True, slots=True)
class RoundTiming:
    """How long rows may be in flight, how often a round begins, how fast it is, how many there are.

    `rounds` 0: they never end.
    """

    settle_s: float
    every_s: float
    rows_per_s: float
    rounds: int


def run_rounds(
    config: Config,
    databases: Mapping[str, str],
    timing: RoundTiming,
    load: str | None,
    *,
    as_json: bool,
) -> None:
    """Go round until Ctrl-C; a database that cannot be read is named, and tried again.

    ConfigError: a database is of no consumer, or none is named.
    """
    sides = _sides(config, databases)
    waiting = Waiting(timing.settle_s, time.sleep, time.monotonic)
    pace = Pace(timing.rows_per_s, time.sleep, time.monotonic)
    done = 0
    while True:
        began_s = time.monotonic()
        for agreement, side in sides:
            try:
                found = compared_consumer(config, agreement, side, waiting, pace, load)
            except HubError as error:
                write_error(f"{side.name}: {error}")
                continue
            store_comparison(StateStore(config.hub.state), found.text(), round(time.time() * 1000))
            _show(side, found, as_json=as_json)
        done += 1
        if done == timing.rounds:
            return
        time.sleep(max(0.0, began_s + timing.every_s - time.monotonic()))


def _sides(
    config: Config, databases: Mapping[str, str]
) -> list[tuple[AgreementConfig, ComparedSide]]:
    if not databases:
        raise ConfigError("--continuous needs --database NAME=DSN for each replica to compare")
    agreements = {one.consumer: one for one in config.agreements}
    for name in databases:
        if name not in agreements:
            raise ConfigError(
                f"--database {name}: no agreement has this consumer: use one of"
                f" {', '.join(agreements) or 'none'}"
            )
    return [(agreements[name], side_named(config, name, databases)) for name in databases]


def _show(side: ComparedSide, found: ComparedRound, *, as_json: bool) -> None:
    if as_json:
        write_json({"replica": side.name, **asdict(found)})
        return
    least = "at least " if found.more_differ else ""
    write_sentence(
        f"{side.name}: {as_count(found.rows, 'row')} compared, {least}{found.differing} differ"
        f" ({found.seconds:.0f} s)"
    )
