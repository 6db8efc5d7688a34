"""What a query in Spark's SQL would read and do, known before anything of it is done.

Spark carries out a command while it parses it, and its SQL can do more than read: run programs
(`TRANSFORM ... USING`), call Java (`reflect`), read files by their paths. So a query is parsed
without being carried out, and whatever is not known to only read is refused.
"""

from collections.abc import Iterator
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.core.model.errors import QuestionError
from streaming.jvm.private import parsed

_READS = {
    *("Project", "Filter", "Aggregate", "Join", "LateralJoin", "Sort", "Distinct", "Union"),
    *("Except", "Intersect", "GlobalLimit", "LocalLimit", "Offset", "Generate", "OneRowRelation"),
    *("UnresolvedRelation", "UnresolvedInlineTable", "UnresolvedHaving", "UnresolvedWith"),
    *("UnresolvedSubqueryColumnAliases", "SubqueryAlias", "WithWindowDefinition", "Pivot"),
    *("Unpivot", "UnresolvedHint", "AsOfJoin", "LocalRelation"),
}
"""The steps of a query that only read what they name."""

_CALLS_JAVA = {"reflect", "java_method", "try_reflect"}


def check_query(spark: SparkSession, text: str, names: frozenset[str]) -> None:
    """QuestionError unless the query reads these tables alone; `names` are in lower case."""
    try:
        nodes = list(_nodes(parsed(spark, text)))
    except (PySparkException, Py4JError) as error:
        raise QuestionError(str(error).split("\n", 1)[0]) from None
    known = names | {
        inner.alias().lower()
        for node in nodes
        if _kind(node) == "UnresolvedWith"
        for inner in _listed(node.innerChildren())
    }
    for node in nodes:
        if _kind(node) not in _READS:
            raise QuestionError(
                f"give one query that reads, a SELECT: {_kind(node)} is not taken here"
            )
        if _kind(node) == "UnresolvedRelation":
            _check_name(list(_listed(node.multipartIdentifier())), known)
        for expression in _listed(node.expressions()):
            _check_functions(expression)


def _check_name(parts: list[str], known: frozenset[str]) -> None:
    if len(parts) != 1 or parts[0].lower() not in known:
        raise QuestionError(
            f"there is no table {'.'.join(parts)!r}: use one of {', '.join(sorted(known))}"
        )


def _check_functions(expression: Any) -> None:  # noqa: ANN401 - py4j has no types
    for one in _below(expression):
        if _kind(one) == "UnresolvedFunction":
            parts = list(_listed(one.nameParts()))
            if len(parts) != 1 or parts[0].lower() in _CALLS_JAVA:
                raise QuestionError(f"the function {'.'.join(parts)} is not taken here")


def _nodes(plan: Any) -> Iterator[Any]:  # noqa: ANN401
    """A step, those below it and those of its subqueries."""
    yield plan
    for inner in (plan.children(), plan.innerChildren()):
        for one in _listed(inner):
            yield from _nodes(one)


def _below(expression: Any) -> Iterator[Any]:  # noqa: ANN401
    yield expression
    for one in _listed(expression.children()):
        yield from _below(one)


def _listed(seq: Any) -> Iterator[Any]:  # noqa: ANN401
    """The members of Scala's sequence."""
    return (seq.apply(number) for number in range(seq.size()))


def _kind(node: Any) -> str:  # noqa: ANN401
    return str(node.getClass().getSimpleName())
