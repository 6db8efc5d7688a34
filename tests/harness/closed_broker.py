"""A broker that lets nobody do anything that no rule allows, to whom each client says who it is."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)

from connectors.kafka.broker import Broker
from connectors.kafka.options import client_options
from streaming.core.model.rights import NeededRight

ADMIN = "admin"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"


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


def closed_broker(folder: Path, users: Iterable[str]) -> Broker:
    """A broker that knows these users and the administrator, who alone may do everything."""
    known = {user: password_of(user) for user in (ADMIN, *users)}
    logins = " ".join(f'user_{user}="{password}"' for user, password in known.items())
    own = f'username="{ADMIN}" password="{known[ADMIN]}"'
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": f"{_LOGIN} {own} {logins};",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:{ADMIN};User:ANONYMOUS",  # the controller, at a port of its own
        "allow.everyone.if.no.acl.found": "false",
    }
    return Broker.start(folder, settings=settings)


def grant(bootstrap: str, user: str, rights: Iterable[NeededRight]) -> None:
    """Give a user exactly these rights beside those that it has."""
    rules = [
        ACL(
            f"User:{user}",
            "*",
            ACLOperation[one.right.name],
            ACLPermissionType.ALLOW,
            ResourcePattern(ResourceType.TOPIC, one.topic),
        )
        for one in rights
    ]
    client = _admin(bootstrap)
    found = client.create_acls(rules)
    client.close()
    assert not found["failed"], found


def revoke(bootstrap: str, user: str, right: NeededRight) -> None:
    """Take one right away from a user."""
    where = ResourcePatternFilter(ResourceType.TOPIC, right.topic, ACLResourcePatternType.LITERAL)
    rule = ACLFilter(
        f"User:{user}", None, ACLOperation[right.right.name], ACLPermissionType.ALLOW, where
    )
    client = _admin(bootstrap)
    client.delete_acls([rule])
    client.close()


def _admin(bootstrap: str) -> KafkaAdminClient:
    return KafkaAdminClient(bootstrap_servers=bootstrap, **client_options(options(ADMIN)))


def toml(options_: Mapping[str, str]) -> str:
    """The options as a section of a configuration."""
    lines = "".join(f"'{name}' = '{value}'\n" for name, value in options_.items())
    return f"\n[kafka.options]\n{lines}"
