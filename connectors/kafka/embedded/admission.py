"""Users of a broker and what each of them may do, as its administrator sets them."""

from collections.abc import Iterable, Mapping, Sequence

from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from connectors.kafka.source_errors import AdminConnection, source_errors
from streaming.core.access.rights import NeededRight
from streaming.core.model.errors import SourceError

ITERATIONS = 8192
_EVERY_RULE = ACLFilter(
    None,
    None,
    ACLOperation.ANY,
    ACLPermissionType.ANY,
    ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY),
)


class Admission(AdminConnection):
    """An administrator's connection; each method raises SourceError."""

    def set_passwords(self, passwords: Mapping[str, str]) -> None:
        """Let each user log in with its password, and with no other."""
        wanted = [
            UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, password, ITERATIONS)
            for user, password in passwords.items()
        ]
        with source_errors(self._bootstrap):
            answers = self._admin.alter_user_scram_credentials(wanted)
        _check(f"user {user}: {text}" for user, text in answers.items() if text)

    def set_rights(self, rights: Mapping[str, Sequence[NeededRight]]) -> None:
        """Make these the only rules of the broker."""
        wanted = {rule_of(user, one) for user, needed in rights.items() for one in needed}
        with source_errors(self._bootstrap):
            given = set(self._admin.describe_acls(_EVERY_RULE)[0])
            made = self._admin.create_acls([*(wanted - given)])
            taken = self._admin.delete_acls([filter_of(rule) for rule in given - wanted])
        failed = [error for *_, error in taken if error.errno]
        _check(str(error.__name__) for error in (*made["failed"], *failed))


def rule_of(user: str, one: NeededRight) -> ACL:
    """The rule that gives a user a right from everywhere."""
    return ACL(
        f"User:{user}",
        "*",
        ACLOperation[one.right.name],
        ACLPermissionType.ALLOW,
        ResourcePattern(ResourceType.TOPIC, one.topic),
    )


def filter_of(rule: ACL) -> ACLFilter:
    """What selects this rule and no other."""
    where = rule.resource_pattern
    place = ResourcePatternFilter(where.resource_type, where.resource_name, where.pattern_type)
    return ACLFilter(rule.principal, rule.host, rule.operation, rule.permission_type, place)


def _check(faults: Iterable[str]) -> None:
    if found := list(faults):
        raise SourceError("Kafka did not set users and rights: " + "; ".join(found))
