"""A query in Spark's SQL reads the tables that it is given, and does nothing else."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.core.model.errors import QuestionError
from streaming.jvm.query_plan import check_query

NAMES = frozenset({"t", "hub_changelog"})


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM t",
        "SELECT k, count(*) FROM T WHERE v > 1 GROUP BY ALL HAVING count(*) > 1 ORDER BY k LIMIT 3",
        "SELECT a.k FROM t a LEFT JOIN hub_changelog AS c ON a.k = c.`key` LIMIT 5 OFFSET 2",
        "WITH x AS (SELECT * FROM t) SELECT * FROM x UNION ALL SELECT * FROM x",
        "SELECT k, (SELECT max(v) FROM t) FROM t WHERE k IN (SELECT `key` FROM hub_changelog)",
        "SELECT k, row_number() OVER (PARTITION BY v ORDER BY k) FROM t",
        "SELECT explode(array(1, 2)), * FROM t LATERAL VIEW explode(array(k)) e AS one",
        "SELECT * FROM (VALUES (1, 'a')) AS v(n, s)",
        "SELECT DISTINCT k FROM t EXCEPT SELECT `key` FROM hub_changelog",
        "TABLE t",
        "SELECT 1",
    ],
)
def test_a_query_that_reads_is_taken(spark: SparkSession, text: str) -> None:
    """What people ask of tables is more than SELECT and FROM."""
    check_query(spark, text, NAMES)


@pytest.mark.parametrize(
    "text",
    [
        "DELETE FROM delta.`{table}`",
        "INSERT INTO t VALUES (1)",
        "INSERT OVERWRITE DIRECTORY '{table}' USING parquet SELECT 1",
        "UPDATE t SET k = 1",
        "MERGE INTO t USING t AS s ON t.k = s.k WHEN MATCHED THEN DELETE",
        "CREATE TABLE x USING parquet LOCATION '{table}' AS SELECT 1",
        "CREATE TEMPORARY VIEW x USING text OPTIONS (path '{table}')",
        "CREATE FUNCTION f AS 'java.lang.Runtime'",
        "DROP TABLE t",
        "TRUNCATE TABLE t",
        "VACUUM delta.`{table}`",
        "ADD JAR '{table}'",
        "LIST FILES",
        "SET spark.sql.runSQLOnFiles = true",
        "SET",
        "USE other",
        "SHOW TABLES",
        "DESCRIBE t",
        "EXPLAIN SELECT * FROM t",
        "CACHE TABLE x AS SELECT 1",
        "EXECUTE IMMEDIATE 'SELECT 1'",
        "SELECT * FROM delta.`{table}`",
        "SELECT * FROM parquet.`{table}`",
        "SELECT * FROM text.`{table}`",
        "SELECT * FROM json.`{table}`",
        "SELECT (SELECT max(value) FROM text.`{table}`) FROM t",
        "SELECT * FROM t WHERE k IN (SELECT value FROM text.`{table}`)",
        "WITH x AS (SELECT * FROM text.`{table}`) SELECT * FROM x",
        "SELECT * FROM IDENTIFIER('text.`{table}`')",
        "SELECT * FROM spark_catalog.default.t",
        "SELECT * FROM other",
        "SELECT * FROM (SELECT 1) AS other JOIN other",
        "SELECT * FROM t VERSION AS OF 1",
        "SELECT TRANSFORM (k) USING 'touch {table}' FROM t",
        "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
        "SELECT * FROM t WHERE upper(java_method('java.lang.System', 'getenv', 'HOME')) = 'x'",
        "SELECT k FROM t ORDER BY try_reflect('java.lang.System', 'getenv', 'HOME')",
        "SELECT other.f(1)",
        "SELECT * FROM range(1000)",
        "SELECT 1; SELECT 2",
        "BEGIN SELECT 1; END",
        "SELEC 1",
        "",
    ],
)
def test_a_statement_that_does_anything_else_is_refused(
    spark: SparkSession, tmp_path: Path, text: str
) -> None:
    """Nothing of it is carried out: Spark's SQL writes, runs programs, calls Java, reads files."""
    with pytest.raises(QuestionError):
        check_query(spark, text.format(table=tmp_path / "file"), NAMES)

    assert not list(tmp_path.iterdir())
