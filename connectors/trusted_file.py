"""Files that hold code or secrets: whoever writes one acts as the hub, so no other user may."""

import os
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

from streaming.core.model.errors import ConfigError

_OTHERS_WRITE = 0o022
_ROOT = 0


def check_trusted(file: Path) -> None:
    """ConfigError if another user may write a file; OSError if there is none.

    Its owner may: that is this user or root, or anybody where the file is mounted read-only, as a
    container's is by whoever runs the container.
    """
    found = file.stat()
    if found.st_mode & _OTHERS_WRITE:
        raise ConfigError(
            f"{file} may be written by other users, who would act as the hub: chmod go-w {file}"
        )
    if found.st_uid not in (_ROOT, os.geteuid()) and not os.statvfs(file).f_flag & os.ST_RDONLY:
        raise ConfigError(
            f"{file} belongs to another user (id {found.st_uid}), who would act as user"
            f" {os.geteuid()}: chown root {file}, or run this as its owner"
        )


def check_module(name: str) -> None:
    """ConfigError if another user may write the file of a module, or of a package above it.

    It is checked before it is run. A module that is not there, or in no file, is none of these.
    """
    for path in accumulate(name.split("."), "{}.{}".format):
        spec = find_spec(path)  # it runs the package above
        if spec is None:
            return
        if spec.has_location and spec.origin is not None:
            check_trusted(Path(spec.origin))
