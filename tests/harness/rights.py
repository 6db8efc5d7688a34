"""Rights on topics, as an administrator of Kafka gives them and takes them away."""

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

WITH_RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
"""Settings of a broker on which everybody may do everything that no rule is about."""

EVERYBODY = "User:*"


def deny_write(bootstrap: str, topic: str) -> None:
    """Let nobody write to a topic; who has the right already keeps it for some milliseconds."""
    deny(bootstrap, topic, ACLOperation.WRITE)


def deny(bootstrap: str, topic: str, *operations: ACLOperation) -> None:
    """Let nobody do this with a topic, and everybody all else."""
    where = ResourcePattern(ResourceType.TOPIC, topic)
    rules = [
        ACL(EVERYBODY, "*", ACLOperation.ALL, ACLPermissionType.ALLOW, where),
        *(ACL(EVERYBODY, "*", one, ACLPermissionType.DENY, where) for one in operations),
    ]
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    found = client.create_acls(rules)
    client.close()
    assert not found["failed"], found


def allow_all(bootstrap: str, topic: str) -> None:
    """Take every rule about a topic back."""
    where = ResourcePatternFilter(ResourceType.TOPIC, topic, ACLResourcePatternType.LITERAL)
    rule = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, where)
    client = KafkaAdminClient(bootstrap_servers=bootstrap)
    client.delete_acls([rule])
    client.close()
