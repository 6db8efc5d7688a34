"""A broker that lets nobody do anything that no rule allows, to whom each client says who it is."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from kafka import KafkaAdminClient

from connectors.kafka.embedded.admission import Admission, filter_of, rule_of
from connectors.kafka.embedded.broker import Broker
from connectors.kafka.options import client_options
from streaming.core.access.rights import NeededRight

ADMIN = "admin"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_CHANGEABLE = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
_AGAIN_MS = "4000"
"""How often each client has to log in again, so that a changed password is soon asked for."""
SECURE = "SECURE"
"""The name of the second listener."""
_PLAIN = "PLAINTEXT:SASL_PLAINTEXT"


class BrokerFiles(NamedTuple):
    """The certificate of a broker with its key, and the authority of those that clients show."""

    own: Path
    authority: Path


def options(user: str, password: str = "") -> dict[str, str]:
    """[kafka.options] of a user; the password is right if none is given."""
    login = f'username="{user}" password="{password or password_of(user)}"'
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f"{_LOGIN} {login};",
    }


def password_of(user: str) -> str:
    """The password that the broker knows of a user."""
    return f"word-of-{user}"


def closed_broker(
    folder: Path, users: Iterable[str], certificates: BrokerFiles | None = None
) -> Broker:
    """A broker that knows these users and the administrator, who alone may do everything.

    With certificates it has a second listener, at which clients show theirs before they log in.
    """
    known = {user: password_of(user) for user in (ADMIN, *users)}
    logins = " ".join(f'user_{user}="{password}"' for user, password in known.items())
    own = f'username="{ADMIN}" password="{known[ADMIN]}"'
    settings = {
        "listener.security.protocol.map": f"{_PLAIN},CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "listener.name.plaintext.scram-sha-512.sasl.jaas.config": _CHANGEABLE,
        "connections.max.reauth.ms": _AGAIN_MS,
        "listener.name.plaintext.plain.sasl.jaas.config": f"{_LOGIN} {own} {logins};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",  # the controller, at a port of its own
        "allow.everyone.if.no.acl.found": "false",
    }
    if certificates is None:
        return Broker.start(folder, settings=settings)
    settings |= {
        "listener.security.protocol.map": f"{_PLAIN},{SECURE}:SASL_SSL,CONTROLLER:PLAINTEXT",
        "listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.secure.scram-sha-512.sasl.jaas.config": _CHANGEABLE,
        "listener.name.secure.ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.own),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
    }
    return Broker.start(folder, settings=settings, listeners=("PLAINTEXT", SECURE))


def changeable(user: str, password: str) -> dict[str, str]:
    """[kafka.options] of a user whose password `set_password` gives."""
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": user,
        "sasl.password": password,
    }


def set_password(bootstrap: str, user: str, password: str) -> None:
    """Give a user this password, and take the one that it had."""
    with Admission(bootstrap, options(ADMIN)) as admission:
        admission.set_passwords({user: password})


def grant(bootstrap: str, user: str, rights: Iterable[NeededRight]) -> None:
    """Give a user exactly these rights beside those that it has."""
    client = _admin(bootstrap)
    found = client.create_acls([rule_of(user, one) for one in rights])
    client.close()
    assert not found["failed"], found


def revoke(bootstrap: str, user: str, right: NeededRight) -> None:
    """Take one right away from a user."""
    client = _admin(bootstrap)
    client.delete_acls([filter_of(rule_of(user, right))])
    client.close()


def _admin(bootstrap: str) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=bootstrap, **client_options(options(ADMIN)))


def toml(options_: Mapping[str, str]) -> str:
    """The options as a section of a configuration."""
    lines = "".join(f"'{name}' = '{value}'\n" for name, value in options_.items())
    return f"\n[kafka.options]\n{lines}"
