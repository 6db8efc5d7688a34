"""The Python of a cluster's executors: the hub's interpreter and packages, shipped in archives.

A node needs Java and Spark, and nothing that anybody installs by hand; so its Python and its
packages are never others than the hub's. Spark sends the archives with the first task.
"""

import hashlib
import os
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path

from connectors.jars import cache_folder
from streaming.core.model.errors import HubError

PACKAGES = ("numpy", "orjson", "pyarrow")
"""What streaming/carriers/parse.py imports, besides pyspark, which a node has."""

OWN = ("streaming", "connectors", "checkpoints")

_PYTHON, _CODE = "slackwater_python", "slackwater_code"
"""The folders of an executor into which Spark unpacks the archives."""

_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
_LEFT_OUT = {
    *("__pycache__", "site-packages", "dist-packages"),
    *("test", "tests", "idlelib", "ensurepip", "tkinter", "lib2to3", "turtledemo", "include"),
}
_CHECKOUT = Path(__file__).parent.parent.parent


class ShippingError(HubError):
    """The archive for the executors could not be made."""


def shipped() -> dict[str, str]:
    """Spark's settings by which executors get their Python."""
    archives = {_PYTHON: python_archive(), _CODE: code_archive()}
    return {
        "spark.archives": ",".join(f"{f.as_uri()}#{name}" for name, f in archives.items()),
        "spark.pyspark.python": f"./{_PYTHON}/bin/{_VERSION}",
        "spark.executorEnv.PYTHONPATH": f"./{_PYTHON}/packages:./{_CODE}",
        "spark.executorEnv.LD_LIBRARY_PATH": f"./{_PYTHON}/lib",
    }


def python_archive() -> Path:
    """The archive of interpreter and packages in the cache, made there if it is missing."""
    versions = [(name, metadata.version(name)) for name in PACKAGES]
    mark = hashlib.sha256(repr((sys.version, sys.base_prefix, versions)).encode()).hexdigest()[:8]
    place = cache_folder() / "executors" / f"{_VERSION}-{mark}.zip"
    if not place.exists():
        _write(place, {**_interpreter(), **_packages()})
    return place


def code_archive() -> Path:
    """The archive of the hub's own code in the cache, made there if it is missing."""
    files = {str(f.relative_to(_CHECKOUT)): f for name in OWN for f in _below(_CHECKOUT / name)}
    content = hashlib.sha256()
    for name, file in files.items():
        content.update(name.encode() + file.read_bytes())
    place = cache_folder() / "executors" / f"slackwater-{content.hexdigest()[:8]}.zip"
    if not place.exists():
        _write(place, files)
    return place


def _write(place: Path, files: Mapping[str, Path]) -> None:
    """Write name -> file into an archive that is either complete or absent."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as folder:
        fresh = Path(folder) / place.name
        with zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, file in files.items():
                archive.write(file, name)
        fresh.replace(place)


def _interpreter() -> dict[str, Path]:
    """Name in the archive -> file, of the Python that this one's environment is based on."""
    stdlib = Path(sysconfig.get_path("stdlib"))
    found = {f"lib/{_VERSION}/{f.relative_to(stdlib)}": f for f in _below(stdlib)}
    found[f"bin/{_VERSION}"] = Path(sys.executable).resolve()
    folder, name = sysconfig.get_config_vars("LIBDIR", "INSTSONAME")
    if sysconfig.get_config_var("Py_ENABLE_SHARED"):
        found[f"lib/{name}"] = Path(folder) / name
    missing = [str(file) for file in found.values() if not file.is_file()]
    if missing:
        raise ShippingError(
            f"this Python cannot be shipped to executors: {missing[0]} is missing; install one on"
            ' every node with the hub\'s packages, and name it as [spark] "spark.pyspark.python"'
        )
    return found


def _packages() -> dict[str, Path]:
    """Name in the archive -> file, of the packages."""
    listed = (file for name in PACKAGES for file in metadata.files(name) or ())
    return {
        f"packages/{file}": Path(str(file.locate()))
        for file in listed
        if not _LEFT_OUT.intersection(file.parts) and ".." not in file.parts
    }


def _below(folder: Path) -> Iterator[Path]:
    """The files below a folder that an executor may need."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            f for f in folders if f not in _LEFT_OUT and not f.startswith("config-")
        )
        yield from (Path(place) / file for file in _kept(files))


def _kept(files: Iterable[str]) -> Iterator[str]:
    return (file for file in sorted(files) if not file.endswith((".pyc", ".pyi", ".a")))
