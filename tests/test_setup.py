"""`make setup` needs the network once per machine, and says what a machine lacks."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from connectors.jars import cache_folder
from deploy.installer import uv_environment

CHECKOUT = Path(__file__).parent.parent
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")
NO_INDEX = "http://127.0.0.1:9/simple"
NO_PROXY = "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=9"
NOT_COPIED = shutil.ignore_patterns(
    ".venv", ".git", "mutants", "*.egg-info", ".*_cache", "__pycache__"
)


def offline(**more: str) -> dict[str, str]:
    """The environment of a machine without network: every index and repository is a closed port."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))
    }
    return {
        **inherited,
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": NO_INDEX,
        "PIP_RETRIES": "0",
        "UV_HTTP_RETRIES": "0",
        "JAVA_TOOL_OPTIONS": NO_PROXY,
        **more,
    }


def make_setup(
    checkout: Path, cwd: Path, environment: dict[str, str]
) -> "subprocess.CompletedProcess[str]":
    """Runs it as a user would, from some other folder."""
    return subprocess.run(
        ["make", "-C", str(checkout), "setup"],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def setup_script(environment: dict[str, str], before: str = "pass") -> tuple[int, str]:
    """Exit code and complaint of the script behind it, after a statement that spoils the Python."""
    script = str(CHECKOUT / "deploy" / "setup.py")
    code = f"import sys, runpy; {before}; runpy.run_path({script!r}, run_name='__main__')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def all_but_uv(_: str, names: list[str]) -> list[str]:
    """What is not to be copied of the cache's tools."""
    return [name for name in names if name.startswith("helm")]


def find_spec(python: Path, module: str) -> str:
    """What a Python finds of a module, as text: None or a description."""
    code = f"import importlib.util; print(importlib.util.find_spec({module!r}))"
    return subprocess.run(
        [python, "-c", code], cwd=python.parent, capture_output=True, text=True, check=True
    ).stdout.strip()


def forge_wheel(folder: Path, name: str, version: str) -> None:
    """A wheel that says that it is this package."""
    folder.mkdir()
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        info = f"{name}-{version}.dist-info"
        wheel.writestr(f"{name}/__init__.py", "")
        wheel.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


def pins(lock: Path) -> dict[str, str]:
    """Package -> version of a lock file."""
    return dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", lock.read_text(), flags=re.MULTILINE))


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout in which nothing was set up yet."""
    shutil.copytree(CHECKOUT, tmp_path / "clone", ignore=NOT_COPIED)
    return tmp_path / "clone"


def test_a_venv_that_is_a_link_is_left_alone(clone: Path, tmp_path: Path) -> None:
    """It is another checkout's, and would be emptied."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "kept").touch()
    (clone / ".venv").symlink_to(other)

    done = make_setup(clone, tmp_path, offline())

    assert done.returncode != 0
    assert f"is a link to {other}" in done.stderr
    assert (other / "kept").exists()


def test_a_second_setup_works_offline_and_from_another_folder(tmp_path: Path) -> None:
    """Work goes on in a train, and build scripts call make from where they are."""
    mark = CHECKOUT / ".venv" / "slackwater-setup"
    before = mark.stat().st_mtime_ns

    done = make_setup(CHECKOUT, tmp_path, offline())

    assert done.returncode == 0, done.stderr
    assert mark.stat().st_mtime_ns == before
    assert "setup:" not in done.stdout


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A second checkout, set up without network and without an archive; what setup complained."""
    checkout = tmp_path_factory.mktemp("other") / "clone"
    shutil.copytree(CHECKOUT, checkout, ignore=NOT_COPIED)
    (checkout / "streaming" / "jvm" / "class_archive.py").write_text("raise SystemExit(1)")
    closed = dict.fromkeys(("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY"), "http://127.0.0.1:9")
    environment = {**os.environ, "JAVA_TOOL_OPTIONS": NO_PROXY, **closed}

    done = make_setup(checkout, checkout.parent, environment)

    assert done.returncode == 0, done.stderr
    return checkout, done.stderr


@pytest.mark.more
def test_another_checkout_needs_no_network(other: tuple[Path, str]) -> None:
    """What one has fetched is there for all of them, and for the one that was moved."""
    checkout, _ = other
    python = checkout / ".venv" / "bin" / "python"

    assert str(checkout / "streaming" / "__init__.py") in find_spec(python, "streaming")
    assert find_spec(python, "pyspark") != "None"
    assert find_spec(python, "mypy") == find_spec(python, "pytest") == "None"


def test_an_archive_that_cannot_be_written_is_told_and_no_more(other: tuple[Path, str]) -> None:
    """It is a gift to the start; a demonstration does not wait for it."""
    checkout, complaint = other
    script: list[str | Path] = [sys.executable, checkout / "deploy" / "setup.py", "demo"]

    demo = subprocess.run(script, capture_output=True, text=True, check=False)

    assert "hubs start some seconds later" in complaint
    assert (demo.returncode, demo.stdout, demo.stderr) == (0, "", "")


@pytest.mark.more
def test_a_package_with_another_hash_is_refused(clone: Path, tmp_path: Path) -> None:
    """Whoever can write to an index, or stand before it, must not get code onto this machine."""
    name, version = "structlog", importlib.metadata.version("structlog")
    forge_wheel(tmp_path / "house", name, version)
    lock = (clone / "requirements.lock").read_text()
    (block,) = re.findall(rf"^{name}==(?:.*\\\n)+.*\n", lock, flags=re.MULTILINE)
    (clone / "requirements.lock").write_text(block)
    cache = tmp_path / "cache"
    shutil.copytree(cache_folder() / "tools", cache / "tools", ignore=all_but_uv)
    house = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path / "house")}

    done = make_setup(clone, tmp_path, offline(SLACKWATER_CACHE=str(cache), **house))

    assert done.returncode != 0
    assert f"Hash mismatch for `{name}=={version}`" in done.stderr
    assert find_spec(clone / ".venv" / "bin" / "python", name) == "None"


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_of_a_lock_has_a_hash_and_no_address(name: str) -> None:
    """A package without one could be any; an address of an index would be another site's."""
    text = (CHECKOUT / name).read_text().replace("\\\n", " ")

    for line in text.splitlines():
        assert re.fullmatch(r"[a-z0-9-]+==[^ ]+( ; [^#]+?)?( +--hash=sha256:[0-9a-f]{64})+", line)
    assert "://" not in text


def test_the_locks_agree_on_every_version() -> None:
    """The tests are about what the product installs only if both locks name the same versions."""
    product, develop, build = (pins(CHECKOUT / name) for name in LOCKS)

    assert product.items() < develop.items()
    assert build["setuptools"] == develop["setuptools"]
    assert not {"mypy", "pytest", "ruff", "playwright"} & product.keys()


def test_uv_is_told_what_pip_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A company's index is configured once, for pip, in a file or a variable."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_", "SSL_"))]:
        monkeypatch.delenv(name)
    (tmp_path / "pip.conf").write_text(
        "[global]\nindex-url = https://index.example/simple\ncert = /a.pem\n"
        "[install]\ntrusted-host =\n    one.example\n    two.example\n"
    )
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_CERT", "/b.pem")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{tmp_path} /not/there")

    found = uv_environment(Path(sys.executable), tmp_path)

    assert found["UV_DEFAULT_INDEX"] == "https://index.example/simple"
    assert found["UV_INSECURE_HOST"] == "one.example two.example"
    assert found["UV_FIND_LINKS"] == str(tmp_path)
    assert found["SSL_CERT_FILE"] == "/b.pem"
    assert found["UV_CACHE_DIR"] == str(tmp_path / "uv")


def test_a_first_setup_without_network_says_so(clone: Path, tmp_path: Path) -> None:
    """A failed download must leave a setup that can be run again, and advice."""
    done = make_setup(clone, tmp_path, offline(SLACKWATER_CACHE=str(tmp_path / "cache")))

    assert done.returncode != 0
    assert "check the network and pip's index settings" in done.stderr
    assert not (clone / ".venv" / "slackwater-setup").exists()


def test_a_missing_java_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    """Minutes of download must not end in an error that could have been known."""
    bare = {"PATH": str(tmp_path), "SLACKWATER_CACHE": str(tmp_path / "cache")}

    code, complaint = setup_script(bare)

    assert code == 1
    assert "openjdk-17-jre-headless" in complaint
    assert "Traceback" not in complaint
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("spoilt", "advice"),
    [
        ("sys.version_info = (3, 9, 2)", "is Python 3.9.2, 3.11 or newer is needed"),
        ("sys.modules['ensurepip'] = None", "apt-get install python3-venv"),
    ],
)
def test_a_python_that_will_not_do_is_told(tmp_path: Path, spoilt: str, advice: str) -> None:
    """Debian's python3 without python3-venv fails half-way through otherwise."""
    code, complaint = setup_script({"SLACKWATER_CACHE": str(tmp_path / "cache")}, spoilt)

    assert code == 1
    assert advice in complaint
    assert "Traceback" not in complaint
