"""The files of a state root: its tables, and small files beside them, in a folder or a bucket.

What differs between the two is here. Both refuse an entry of a table's log that exists, by a hard
link or by a conditional PUT: that is what the commit protocol rests on.
"""

import os
import re
import stat
import tempfile
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from streaming.core.access.root import BucketRoot, S3Access, StateRoot
from streaming.core.model.errors import StateError

if TYPE_CHECKING:  # its import takes time, and who reads the tables of a folder does without
    import pyarrow.fs as pafs

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def storage_says(error: Exception) -> str:
    """The text of an error of deltalake or of the storage, in a line and without its colours."""
    return " ".join(_COLOUR.sub("", str(error)).split())


def what_to_check(root: StateRoot) -> str:
    """What keeps a place from being read or written."""
    return "disk (space, rights)" if isinstance(root, Path) else "bucket (address, keys, rights)"


def table_uri(root: StateRoot, name: str) -> str:
    """Where a table is, as deltalake and Spark name it."""
    return str(root / name) if isinstance(root, Path) else f"{root}/{name}"


def storage_options(root: StateRoot) -> dict[str, str] | None:
    """What deltalake needs besides the place of a table."""
    if isinstance(root, Path):
        return None
    access = root.access
    options = {
        "AWS_ENDPOINT_URL": access.endpoint,
        "AWS_REGION": access.region,
        "AWS_ACCESS_KEY_ID": access.access_key_id,
        "AWS_SECRET_ACCESS_KEY": access.secret_access_key,
        "AWS_ALLOW_HTTP": "true" if access.is_plain else None,
        "AWS_CONDITIONAL_PUT": "etag",  # the default of this version, and nothing works without it
    }
    return {name: value for name, value in options.items() if value is not None}


def open_delta(root: StateRoot, name: str) -> DeltaTable:
    """The table at its newest version; TableNotFoundError if there is none."""
    return DeltaTable(table_uri(root, name), storage_options=storage_options(root))


def local_folder(root: StateRoot) -> Path:
    """A folder of this machine for the locks and the scratch of hubs on this state."""
    if isinstance(root, Path):
        return root
    return _own_folder() / root.name


def _own_folder() -> Path:
    """This user's folder for what lasts until the machine is started again.

    In a temporary folder that all users write somebody else could have made it first.
    """
    given = os.environ.get("XDG_RUNTIME_DIR")
    if given and Path(given).is_dir():
        return Path(given) / "slackwater"
    folder = Path(tempfile.gettempdir()) / f"slackwater-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    if found.st_uid != os.getuid() or not is_private:
        raise StateError(
            f"{folder} is not this user's alone: remove it, or set XDG_RUNTIME_DIR to a folder that"
            " is"
        )
    return folder


def is_inside(place: StateRoot, root: StateRoot) -> bool:
    """Return whether a place is this root, or in it."""
    if isinstance(place, Path):
        return isinstance(root, Path) and place.resolve().is_relative_to(root.resolve())
    return not isinstance(root, Path) and f"{place}/".startswith(f"{root}/")


def make_root(root: StateRoot) -> None:
    """Create the folder; a bucket has to be there, and prefixes need not be made."""
    if isinstance(root, Path):
        root.mkdir(parents=True, exist_ok=True)


def exist(root: StateRoot, *names: str) -> list[bool]:
    """Return of each of these files whether it is there."""
    if isinstance(root, Path):
        return [(root / name).exists() for name in names]
    found = _files(root.access).get_file_info([_path(root, name) for name in names])
    return [one.type.name != "NotFound" for one in found]


def written_s(root: StateRoot, name: str) -> float | None:
    """When a file was written, in seconds since 1970; None: it is not there."""
    if isinstance(root, Path):
        with suppress(FileNotFoundError):
            return (root / name).stat().st_mtime
        return None
    written_ns: int | None = _files(root.access).get_file_info(_path(root, name)).mtime_ns
    return None if written_ns is None else written_ns / 1e9


def read_file(root: StateRoot, name: str) -> bytes:
    """Return what a file holds; OSError if it cannot be read."""
    if isinstance(root, Path):
        return (root / name).read_bytes()
    with _files(root.access).open_input_file(_path(root, name)) as file:
        return bytes(file.read())


def replace_file(root: StateRoot, name: str, content: bytes) -> None:
    """Replace a file; a reader sees the old or the new one."""
    if isinstance(root, Path):
        place = root / name
        place.parent.mkdir(exist_ok=True)
        fresh = place.with_name(f".{place.name}")
        fresh.write_bytes(content)
        fresh.replace(root / name)
        return
    with _files(root.access).open_output_stream(_path(root, name)) as file:
        file.write(content)


def file_names(root: StateRoot, folder: str) -> list[str]:
    """Return the names of the files of a folder that are whole; none if it is not there."""
    if isinstance(root, Path):
        with suppress(FileNotFoundError):
            return [one.name for one in (root / folder).iterdir() if not one.name.startswith(".")]
        return []
    import pyarrow.fs as pafs  # noqa: PLC0415  # as above

    chosen = pafs.FileSelector(_path(root, folder), allow_not_found=True)
    return [one.base_name for one in _files(root.access).get_file_info(chosen) if one.is_file]


def remove_file(root: StateRoot, name: str) -> None:
    """Remove a file if it is there."""
    if isinstance(root, Path):
        (root / name).unlink(missing_ok=True)
    elif all(exist(root, name)):
        _files(root.access).delete_file(_path(root, name))


def folder_of(root: StateRoot, name: str) -> "tuple[pafs.FileSystem, str]":
    """Return a folder of the root as pyarrow reads it."""
    if isinstance(root, Path):
        import pyarrow.fs as pafs  # noqa: PLC0415  # as above

        return pafs.LocalFileSystem(), str(root / name)
    return _files(root.access), _path(root, name)


def remove_folder(root: StateRoot, name: str) -> None:
    """Remove a folder and what is in it, as far as that is possible."""
    with suppress(OSError):
        files, path = folder_of(root, name)
        files.delete_dir(path)


def files_of_table(root: StateRoot, name: str) -> "pafs.FileSystem | None":
    """Return the files of a table as pyarrow reads them; None: as deltalake does."""
    if isinstance(root, Path):
        return None
    import pyarrow.fs as pafs  # noqa: PLC0415  # as above

    return pafs.SubTreeFileSystem(_path(root, name), _files(root.access))


def _path(root: BucketRoot, name: str) -> str:
    return f"{root.bucket}/{root.prefix}/{name}"


@lru_cache
def _files(access: S3Access) -> "pafs.S3FileSystem":
    """The client of pyarrow; it shares connections, so there is one."""
    import pyarrow.fs as pafs  # noqa: PLC0415  # as above

    scheme, _, address = (access.endpoint or "https://").partition("://")
    return pafs.S3FileSystem(
        access_key=access.access_key_id,
        secret_key=access.secret_access_key,
        region=access.region,
        scheme=scheme,
        endpoint_override=address or None,
    )
