"""The release of this checkout, built once for all tests here."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_setup import CHECKOUT, NOT_COPIED


def constraints(lock: Path, target: Path) -> Path:
    """The versions of a lock file, which hashes would keep from being used for our own wheel."""
    target.write_text("\n".join(re.findall(r"^[^ =]+==[^ \n]+", lock.read_text(), re.MULTILINE)))
    return target


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder `dist` of a copy of the checkout, with wheel, source archive and jars."""
    copy = tmp_path_factory.mktemp("release") / "checkout"
    shutil.copytree(CHECKOUT, copy, ignore=NOT_COPIED, symlinks=True)
    subprocess.run([sys.executable, "deploy/dist.py", "dist"], cwd=copy, check=True)
    return copy / "dist"
