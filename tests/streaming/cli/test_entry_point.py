"""How a process of the command line ends."""

import subprocess
import sys
from pathlib import Path

import pytest

ENDS_WHILE_A_TABLE_IS_READ = """
import sys, threading, time
import deltalake, pyarrow
import streaming.cli.main
from streaming.cli.entry import main

deltalake.write_deltalake(sys.argv[1], pyarrow.table({"a": [1]}))
path, sys.argv[1] = sys.argv[1], "run"

def reads():
    while True:
        deltalake.DeltaTable(path)

def works():
    for _ in range(8):
        threading.Thread(target=reads, daemon=True).start()
    time.sleep(0.2)
    print("over")
    return int(sys.argv[2])

streaming.cli.main.main = works
sys.exit(main())
"""


@pytest.mark.parametrize("code", [0, 3])
def test_a_hub_that_ends_is_not_aborted_by_a_thread_that_reads_a_table(
    tmp_path: Path, code: int
) -> None:
    """The page's thread and a standby's are daemons; Python aborts those that are in a library."""
    arguments = [str(tmp_path / "table"), str(code)]
    done = subprocess.run(
        [sys.executable, "-c", ENDS_WHILE_A_TABLE_IS_READ, *arguments],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (code, "over\n", "")
