"""A cluster that is not there is named before anything starts."""

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
