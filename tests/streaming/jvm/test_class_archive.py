"""The archive of Spark's classes makes a start quicker, and is never in its way."""

import subprocess
import sys
from pathlib import Path

import pytest

from streaming.jvm.class_archive import java_options, run_and_tell
from streaming.jvm.java import find_java

ALONE = """
from streaming.jvm.session import session
session("alone", {"spark.driver.extraJavaOptions": "-Xlog:class+load:file=loaded.txt"})
"""


@pytest.mark.more
def test_a_session_takes_its_classes_from_the_archive(tmp_path: Path) -> None:
    """One that is not mapped would be missed by nobody but the clock."""
    subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, check=True)

    loaded = (tmp_path / "loaded.txt").read_text().splitlines()
    spark = [line for line in loaded if " org.apache.spark." in line]
    assert sum("shared objects file" in line for line in spark) > len(spark) / 2


def test_an_archive_that_is_damaged_or_missing_costs_nothing_but_time(tmp_path: Path) -> None:
    """It is a gift to the start, no part of it."""
    damaged = tmp_path / "damaged.jsa"
    damaged.write_bytes(b"no archive")

    options = java_options(damaged).split()
    done = subprocess.run(
        [find_java(), *options, "-version"], capture_output=True, text=True, check=True
    )

    assert f"-XX:SharedArchiveFile={damaged}" in options
    assert "warning" not in done.stdout + done.stderr
    assert java_options(tmp_path / "missing.jsa") == ""


def test_a_long_step_of_setup_says_that_it_is_at_work(tmp_path: Path) -> None:
    """Half a minute without a word, and minutes on a slow machine, look like a hang."""
    told, end = list[str](), tmp_path / "end"
    waits = f"import os\nwhile not os.path.exists({str(end)!r}): pass\nprint('loaded')"

    def tell(text: str) -> None:
        told.append(text)
        end.touch()

    code, said = run_and_tell([sys.executable, "-c", waits], tell, every_s=0.01)

    assert (code, said) == (0, "loaded\n")
    assert told[0].startswith("still at work after ")
