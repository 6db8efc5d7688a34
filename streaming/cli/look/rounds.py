"""`compare --continuous`: each consumer compared with the hub, round after round, beside a hub."""

from collections.abc import Mapping
from dataclasses import asdict

from streaming.cli.exit_codes import ExitCode
from streaming.compare.rounds import RoundOptions, consumer_rounds, go_round, round_text
from streaming.config.config import Config
from streaming.core.model.errors import ConfigError, HubError
from streaming.facts.consumers.compared import ComparedRound
from streaming.terminal.output import write_error, write_json, write_sentence


def run_rounds(
    config: Config, databases: Mapping[str, str], options: RoundOptions, *, as_json: bool
) -> ExitCode:
    """Go round until Ctrl-C, or --rounds; a database that cannot be read is named, and tried again.

    `NOT_ASKED` if the last round of a consumer could not be, otherwise `NO` if it found rows that
    differ.

    ConfigError: a database is of no consumer, or none is named.
    """
    last: dict[str, ExitCode] = {}

    def show(consumer: str, found: ComparedRound | HubError) -> None:
        last[consumer] = _exit_code(found)
        if isinstance(found, HubError):
            write_error(f"{consumer}: {found}")
        elif as_json:
            write_json({"replica": consumer, **asdict(found)})
        else:
            write_sentence(round_text(consumer, found))

    consumers = consumer_rounds(config, databases, options)
    if not consumers:
        raise ConfigError(
            "--continuous needs --database NAME=DSN for each replica to compare, or a section"
            " [agreements.compare] in the configuration"
        )
    go_round(config, consumers, options, show)
    return max(last.values(), default=ExitCode.YES)


def _exit_code(found: ComparedRound | HubError) -> ExitCode:
    if isinstance(found, HubError):
        return ExitCode.NOT_ASKED
    return ExitCode.NO if found.differing else ExitCode.YES
