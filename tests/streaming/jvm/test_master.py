"""A cluster that is not there is named before anything starts."""

import re
import socket

import pytest

from streaming.jvm.master import MasterError, check_master, is_local_master


@pytest.mark.parametrize(
    ("master", "is_local"),
    [
        ("local", True),
        ("local[4]", True),
        ("local[*]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://host:7077", False),
        ("k8s://https://host:443", False),
    ],
)
def test_only_this_process_is_local(master: str, is_local: bool) -> None:  # noqa: FBT001
    """What is shipped, warmed up and carried follows from it."""
    assert is_local_master(master) is is_local


@pytest.mark.parametrize(
    "master",
    ["spark://host", "sparc://host:7077", "local[two]", "host:7077", "", "spark://a:1,b", "k8s://"],
)
def test_what_is_no_address_is_refused_before_spark_starts(master: str) -> None:
    """Spark's own answer is a stack of Java's, or a search for a host of that name."""
    with pytest.raises(MasterError, match=re.escape(f"{master!r}: give spark://HOST:PORT")):
        check_master(master)


@pytest.mark.parametrize("master", ["local", "local[*]", "local[2, 3]", "yarn", "k8s://h:443"])
def test_only_a_standalone_master_is_asked(master: str) -> None:
    """The others are for Spark to find."""
    check_master(master)


def test_a_master_that_does_not_answer_is_named() -> None:
    """Spark itself tries for a minute, and its error names no master."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]

    with pytest.raises(MasterError, match=f"no Spark master answers at spark://127.0.0.1:{port}"):
        check_master(f"spark://127.0.0.1:{port}")


def test_one_of_several_masters_is_enough() -> None:
    """Masters with a standby are listed; the first may be the dead one."""
    with socket.create_server(("127.0.0.1", 0)) as dead:
        gone = dead.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as alive:
        check_master(f"spark://127.0.0.1:{gone},127.0.0.1:{alive.getsockname()[1]}")


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.0.0.1"])
def test_the_login_of_a_master_is_not_shown(address: str) -> None:
    """Spark takes none there, and an error is in the logs."""
    with pytest.raises(MasterError) as refused:
        check_master(f"spark://u:topsecret99@{address}")

    assert f"spark://***@{address}" in str(refused.value)
    assert "topsecret99" not in str(refused.value)
