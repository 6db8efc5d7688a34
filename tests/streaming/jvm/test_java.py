"""A missing or old Java is told before anything fails in its own words."""

from pathlib import Path

import pytest

from streaming.jvm.java import JavaError, check_java, find_java, java_major


def fake_java(home: Path, answer: str) -> None:
    """A JAVA_HOME whose java prints the answer."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(f"#!/bin/sh\necho '{answer}' >&2\n")
    command.chmod(0o755)


@pytest.mark.parametrize(
    ("text", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_392"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea" 2025-09-16', 25),
        ("Error: could not find libjava.so", None),
    ],
)
def test_the_version_is_read_as_vendors_write_it(text: str, major: int | None) -> None:
    """A good Java must not be refused because of how it prints its version."""
    assert java_major(text) == major


def test_a_missing_java_names_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The usual first failure of a new machine is repaired by one command."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(JavaError, match="openjdk-17-jre-headless"):
        check_java()


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark would use JAVA_HOME whatever the PATH has, so the advice must be about it."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaError, match=f"JAVA_HOME .{tmp_path}.*openjdk-17-jre-headless"):
        check_java()


def test_an_old_java_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Spark 4 on Java 11 fails with a class version that says nothing to an operator."""
    fake_java(tmp_path, 'openjdk version "11.0.22" 2024-01-16')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(JavaError, match="is Java 11, too old"):
        check_java()


def test_java_home_comes_before_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Broker and Spark run on the same Java."""
    fake_java(tmp_path, 'openjdk version "21" 2023-09-19')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    check_java()

    assert find_java() == tmp_path / "bin" / "java"
