"""`doctor` asks the port of its hub as that wants to be asked."""

from pathlib import Path

import pytest

from streaming.cli.start.port_check import NOT_ADMITTED, answer_at
from streaming.config.sections import HttpConfig
from tests.harness.served_port import port_of_a_hub
from tests.harness.tls_files import authority, certificate

TOKEN = "0123456789abcdef"


def test_a_token_is_given(tmp_path: Path) -> None:
    """Its own hub was a stranger to it; one with another token is one."""
    with port_of_a_hub(tmp_path, f'token = "{TOKEN}"') as port:
        mine, others = (
            answer_at(HttpConfig(port=port, token=token)) for token in (TOKEN, TOKEN[::-1])
        )

    assert mine not in (None, {}, NOT_ADMITTED)
    assert others is NOT_ADMITTED


@pytest.mark.parametrize("asked", ["token", "client_ca"])
def test_over_tls_only_the_hub_with_this_certificate_is_asked(tmp_path: Path, asked: str) -> None:
    """No other program gets the token; a certificate of a client it has none to show."""
    ca = authority(tmp_path, "ca")
    for name in ("hub", "other"):
        certificate(tmp_path, name, ca)
    wanted = {"token": TOKEN, "client_ca": str(tmp_path / "ca.crt")}[asked]
    files = {"certificate": str(tmp_path / "hub.crt"), "key": str(tmp_path / "hub.key")}
    lines = "\n".join(f'{name} = "{value}"' for name, value in (files | {asked: wanted}).items())

    with port_of_a_hub(tmp_path, lines) as port:
        known = HttpConfig.model_validate({"port": port, asked: wanted} | files)
        mine = answer_at(known)
        others = answer_at(known.model_copy(update={"certificate": tmp_path / "other.crt"}))

    assert (mine is NOT_ADMITTED) == (asked == "client_ca")
    assert mine
    assert others == {}
