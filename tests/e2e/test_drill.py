"""The disaster drill of docs/deploy.md, command by command, on the site of getting-started.md."""

import os
import re
import shlex
from pathlib import Path

import pytest

from connectors.kafka.embedded.broker import Broker
from tests.harness.customers import (
    PLACES,
    agent,
    make_site,
    run,
    started,
    until_both_hold,
    until_yes,
    write,
)

DOCS = Path(__file__).parents[2] / "docs"


def steps() -> list[list[str]]:
    """The words of each command of the drill."""
    page = (DOCS / "deploy.md").read_text(encoding="utf-8")
    section = page.partition("## A disaster drill\n")[2].partition("\n## ")[0]
    return [
        shlex.split(text) for text in re.findall(r"```sh\n(.*?)```", section, re.DOTALL) if text
    ]


@pytest.mark.slow
def test_a_lost_state_is_put_back_as_the_page_says(
    tmp_path: Path, broker: Broker, topic_prefix: str
) -> None:
    """What was written behind the copy is at both places in the end, and the history is sound."""
    backup, lose, restore, begin, level, verify = steps()
    make_site(tmp_path, broker, topic_prefix)
    agents = [agent(place) for place in PLACES]
    with started(tmp_path, agents[0]), started(tmp_path, agents[1]):
        with started(tmp_path, begin):
            write(tmp_path, "berlin", 1, "Ada")
            until_both_hold(tmp_path, (1, "Ada"))
            until_yes(tmp_path, level)
            assert run(tmp_path, backup) == 0
            write(tmp_path, "lisbon", 1, "Ada Lovelace")
            write(tmp_path, "berlin", 2, "Grace")
            until_both_hold(tmp_path, (1, "Ada Lovelace"), (2, "Grace"))
            until_yes(tmp_path, level)

        assert run(tmp_path, lose) == 0
        assert run(tmp_path, restore) == 0
        with started(tmp_path, begin):
            write(tmp_path, "lisbon", 3, "Edsger")
            until_both_hold(tmp_path, (1, "Ada Lovelace"), (2, "Grace"), (3, "Edsger"))
            until_yes(tmp_path, level)
        assert run(tmp_path, verify) == 0
    assert os.path.lexists(tmp_path / "state.lost")
