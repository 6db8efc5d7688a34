"""Secret files: a folder whose files stand for environment variables, as containers mount it.

A variable can be read in the process's own listing and is inherited by all that it starts; a
file is readable by its owner only.
"""

import os
from pathlib import Path

from connectors.trusted_file import check_trusted
from streaming.core.model.errors import ConfigError

FOLDER_VARIABLE = "SLACKWATER_SECRETS"


def secrets_folder() -> Path | None:
    """The folder of secret files, by SLACKWATER_SECRETS; None: there is none."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named).expanduser() if named else None


def secret_files() -> list[str]:
    """The names of the files in it; ConfigError if one of them cannot be read."""
    files = secret_paths()
    try:
        for file in files:
            file.open("rb").close()
            if file.is_file():
                check_trusted(file)
    except OSError as error:
        raise _unusable(error) from None
    return [file.name for file in files]


def secret_paths() -> list[Path]:
    """The files in it, by name; ConfigError if it is no folder that this user can read."""
    folder = secrets_folder()
    try:
        found = [] if folder is None else [*folder.iterdir()]
    except OSError as error:
        raise _unusable(error) from None
    return sorted(file for file in found if not file.name.startswith("."))


def _unusable(error: OSError) -> ConfigError:
    return ConfigError(
        f"{FOLDER_VARIABLE}={secrets_folder()}: {error}: name a folder of files that this user can"
        " read"
    )
