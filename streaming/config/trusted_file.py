"""Files that hold code or secrets: whoever writes one acts as the hub, so no other user may."""

from pathlib import Path

from streaming.core.model.errors import ConfigError

_OTHERS_WRITE = 0o022


def check_trusted(file: Path) -> None:
    """ConfigError if another user may write a file; OSError if there is none."""
    if file.stat().st_mode & _OTHERS_WRITE:
        raise ConfigError(
            f"{file} may be written by other users, who would act as the hub: chmod go-w {file}"
        )
