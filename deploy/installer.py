"""uv, the installer of packages: fetched by pip, which has its hash, and told what pip is told.

Only the standard library is imported: it runs before anything is installed.
"""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
BUILD_LOCK = CHECKOUT / "requirements-build.lock"

_NAMES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}
"""Setting of pip -> the variable that says the same to uv, which does not read pip's files."""


def install_command(python: Path, cache: Path) -> list[str | Path]:
    """`uv pip install` into a virtual environment, of exactly what is named.

    CalledProcessError: uv could not be fetched; pip has said why.
    """
    uv: list[str | Path] = [uv_command(python, cache), "pip", "install", "-q", "--no-deps"]
    # Almost all of Spark are jars: to compress them again takes seconds and saves nothing.
    fast = ["--config-settings-package", "pyspark:--build-option=bdist_wheel --compression=stored"]
    no_index = ["--no-index"] if "no-index" in pip_settings(python) else []  # it has no variable
    return [*uv, "--python", python, "--build-constraints", BUILD_LOCK, *fast, *no_index]


def uv_command(python: Path, cache: Path) -> Path:
    """uv, fetched by the pip of a virtual environment unless the cache has it.

    CalledProcessError: it could not be fetched; pip has said why.
    """
    content = BUILD_LOCK.read_bytes() + sysconfig.get_platform().encode()
    place = cache / "tools" / f"uv-{hashlib.sha256(content).hexdigest()[:8]}"
    if not place.exists():
        place.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as fresh:
            target = Path(fresh) / place.name
            pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check", "install"]
            pip += ["-q", "--no-input", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
            subprocess.run([*pip, "-r", BUILD_LOCK, "--target", target], check=True)
            target.rename(place)
    return place / "bin" / "uv"


def uv_environment(python: Path, cache: Path) -> dict[str, str]:
    """The environment for uv: pip's settings, and what is set for uv itself over them.

    Every package has its hash, so it does not matter from which of several indexes it comes.
    """
    settings = pip_settings(python)
    return {
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        **{_NAMES[name]: _value(name, settings[name]) for name in settings.keys() & _NAMES.keys()},
        **os.environ,
        "UV_CACHE_DIR": str(cache / "uv"),
    }


def _value(name: str, text: str) -> str:
    """A setting as uv wants it: it separates folders by commas, and has to find each of them."""
    if name != "find-links":
        return " ".join(text.split())
    return ",".join(place for place in text.split() if "://" in place or Path(place).exists())


def pip_settings(python: Path) -> dict[str, str]:
    """What pip's files and variables set for `pip install`, by the name of the option."""
    done = subprocess.run(
        [python, "-m", "pip", "config", "list"], capture_output=True, encoding="utf-8", check=True
    )
    settings = dict[str, dict[str, str]]()
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        section, _, name = key.rpartition(".")
        settings.setdefault(section, {})[name] = str(ast.literal_eval(value))
    strongest_last = (settings.get(name, {}) for name in ("global", "install", ":env:"))
    return {name: value for section in strongest_last for name, value in section.items()}


def drop_sources(cache: Path) -> None:
    """Remove the sources from which uv has built: a gigabyte of Spark, which it keeps installed."""
    for sources in (cache / "uv").glob("sdists-*/*/*/*/*/src"):
        shutil.rmtree(sources)
