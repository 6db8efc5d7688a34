"""What is shipped to executors runs the hub's part there without anything that a node has."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from connectors.jars import pyspark_jars
from streaming.jvm import executor_python
from streaming.jvm.session import settings_of_session

CLUSTER = {"spark.master": "spark://host:7077"}
TOLD = """
import sys, numpy, pyarrow, streaming.carriers.parse as ours
print(sys.prefix, numpy.__file__, pyarrow.__file__, ours.__file__, sep="\\n")
"""


def unpack(archive: Path, folder: Path) -> None:
    """Unpack as Hadoop does: with the files' modes."""
    with zipfile.ZipFile(archive) as packed:
        for one in packed.infolist():
            packed.extract(one, folder)
            (folder / one.filename).chmod(one.external_attr >> 16)


def test_shipped_python_imports_what_executors_run(tmp_path: Path) -> None:
    """A package that is missing would show on a cluster only, in the first large batch."""
    settings = settings_of_session(CLUSTER)
    for uri in settings["spark.archives"].split(","):
        path, _, name = uri.removeprefix("file://").partition("#")
        unpack(Path(path), tmp_path / name)
    lib = pyspark_jars().parent / "python" / "lib"
    of_node = [str(file) for file in sorted(lib.glob("*.zip"))]
    own = settings["spark.executorEnv.PYTHONPATH"]

    done = subprocess.run(
        [settings["spark.pyspark.python"], "-c", TOLD],
        cwd=tmp_path,
        env={
            "PYTHONPATH": os.pathsep.join([*of_node, own]),
            "LD_LIBRARY_PATH": settings["spark.executorEnv.LD_LIBRARY_PATH"],
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    found = [(tmp_path / line).resolve() for line in done.stdout.splitlines()]
    assert len(found) == 4
    assert all(path.is_relative_to(tmp_path) for path in found), found


def test_an_own_python_of_the_nodes_is_taken_as_it_is() -> None:
    """An image with the hub's packages needs no archive of a hundred megabytes."""
    settings = settings_of_session({**CLUSTER, "spark.pyspark.python": "/opt/hub/bin/python"})

    assert settings["spark.pyspark.python"] == "/opt/hub/bin/python"
    assert "spark.archives" not in settings


def test_a_local_session_ships_nothing() -> None:
    """Its executors are threads of this machine, with this Python."""
    assert "spark.archives" not in settings_of_session({})


def test_changed_code_is_shipped_anew(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An archive under an old name would let executors check records by old rules."""
    monkeypatch.setenv("SLACKWATER_CACHE", str(tmp_path))
    first = executor_python.code_archive()
    changed = tmp_path / "checkout"
    for name in executor_python.OWN:
        (changed / name).mkdir(parents=True)
        (changed / name / "new.py").write_text("# other code")
    monkeypatch.setattr(executor_python, "_CHECKOUT", changed)

    second = executor_python.code_archive()

    assert first != second
    with zipfile.ZipFile(second) as archive:
        names = archive.namelist()
    assert names == [f"{n}/new.py" for n in executor_python.OWN]
