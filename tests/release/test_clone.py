"""A second checkout on a machine needs no network; minutes, so it is none of `make test`."""

import shutil
import subprocess
from pathlib import Path

from tests.test_setup import CHECKOUT, NOT_COPIED, make_setup, offline


def test_a_new_clone_sets_up_offline_from_full_caches(tmp_path: Path) -> None:
    """The caches belong to the machine, so the next checkout costs no download."""
    clone = tmp_path / "clone"
    shutil.copytree(CHECKOUT, clone, ignore=NOT_COPIED)

    done = make_setup(clone, tmp_path, offline())

    assert done.returncode == 0, done.stderr
    told = subprocess.run(
        [clone / ".venv" / "bin" / "python", "-c", "import streaming; print(streaming.__file__)"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == str(clone / "streaming" / "__init__.py")
    assert (clone / ".venv" / "bin" / "slackwater").exists()
