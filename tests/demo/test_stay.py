"""A demonstration that stays: its page is there until somebody ends it, and then it concludes."""

import json
import re
from pathlib import Path

from tests.demo.processes import Demonstration
from tests.harness.served_hub import Port


def test_it_stays_with_its_page_until_it_is_interrupted(tmp_path: Path) -> None:
    """Whoever tries it looks at the page, writes to the files, and ends it with Ctrl-C."""
    demonstration = Demonstration(tmp_path / "demo", more=("--stay",))
    try:
        assert demonstration.process.stderr is not None
        line = next(one for one in demonstration.process.stderr if one.startswith("stays"))
        found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, line
        page = Port(int(found[1])).get("/")
        demonstration.interrupt()
        code, out, error = demonstration.ended()
    finally:
        demonstration.clean_up()

    assert page.code == 200
    assert "<title>Slackwater</title>" in page.text
    assert code == 0, out + error
    assert json.loads(out)["holds"]
    assert demonstration.processes() == {}
