"""The lock of a state in a bucket is in a folder that nobody else can have made."""

import os
from pathlib import Path

import pytest

from checkpoints.root import local_folder
from streaming.core.access.root import parse_root
from streaming.core.model.errors import StateError


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The machine's temporary folder, and no folder of the user's session."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    return tmp_path


def test_the_folder_of_the_session_is_taken(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is the user's own by the system's word."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(temporary))

    assert local_folder(parse_root("s3://lake/hub")).parent == temporary / "slackwater"


def test_a_folder_in_the_temporary_one_is_for_its_user_alone(temporary: Path) -> None:
    """Whoever writes there could hold the lock, or have the hub follow a link."""
    folder = local_folder(parse_root("s3://lake/hub")).parent

    assert folder.parent == temporary
    assert folder.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("made", ["open", "link"])
def test_one_that_somebody_else_made_is_refused(temporary: Path, made: str) -> None:
    """Its name can be told by everybody, before the hub makes it."""
    folder, elsewhere = temporary / f"slackwater-{os.getuid()}", temporary / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if made == "open":
        folder.mkdir()
        folder.chmod(0o777)
    else:
        folder.symlink_to(elsewhere)

    with pytest.raises(StateError, match="is not this user's alone"):
        local_folder(parse_root("s3://lake/hub"))
