"""The options that the installed Spark, Delta and Kafka clients know, read from their jars.

They ignore an option that they do not know, and who misspelled it believes that it is in force.
Nothing but the classes that declare options is read, so this takes a second and no JVM.
"""

import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from connectors.jars import SPARK, cached, pyspark_jars
from connectors.kafka.options import PASSWORD, USER
from streaming.jvm.master import master_complaint

_SPARK_CLASSES = re.compile(
    r"/config/|spark/SparkContext\$?\.class|Conf(ig)?(Helper)?\$?(\w*\$)*\.class$"
)
_DELTA_CLASSES = re.compile(r"delta/sources/DeltaSQLConf")
_KAFKA_CLASSES = re.compile(
    r"kafka/clients/(consumer/Consumer|producer/Producer|admin/AdminClient|CommonClient)Configs?\."
    r"|kafka/common/config/(Ssl|Sasl|Security)Configs?\.|kafka/common/config/internals/"
)

_FREE = (
    *("spark.hadoop.", "spark.hive.", "spark.executorEnv.", "spark.yarn.appMasterEnv."),
    *("spark.ssl.", "spark.metrics.conf.", "spark.sql.catalog.", "spark.plugins.internal.conf."),
    *("spark.driver.resource.", "spark.executor.resource.", "spark.task.resource."),
    *("spark.kubernetes.", "spark.yarn.", "spark.scheduler.listenerbus.eventqueue."),
    *("spark.kafka.clusters.", "spark.network.crypto.config.", "spark.shuffle.service.db."),
)
"""What follows these is not declared: it names a user's own variables, labels, catalogs or files.
"""

_DELTA = "spark.databricks.delta."
_SIZE = re.compile(r"\d+([kmgtp]?b?)", re.IGNORECASE)


def spark_complaints(options: Mapping[str, str]) -> Iterator[str]:
    """One sentence for each option of `[spark]` that Spark would ignore or refuse."""
    if not options:
        return
    known = _spark_names()
    for name, value in options.items():
        if not name.startswith("spark."):
            full = f"spark.{name}"
            also = f": did you mean {full}?" if full in known else ""
            yield f'spark."{name}": Spark ignores an option that does not begin with "spark."{also}'
        elif name not in known and not name.startswith(_FREE):
            yield f'spark."{name}": Spark does not know this option{_meant(name, known)}'
        elif name.endswith(".enabled") and value.lower() not in ("true", "false"):
            yield f'spark."{name}" = {value!r}: give true or false'
        elif name.endswith((".memory", ".memoryOverhead")) and not _SIZE.fullmatch(value):
            yield f'spark."{name}" = {value!r}: give a number with a unit, such as 2g or 512m'
        elif name == "spark.master" and (complaint := master_complaint(value)):
            yield complaint


def kafka_complaints(options: Mapping[str, str]) -> Iterator[str]:
    """One sentence for each option of `[kafka.options]` that no Kafka client is given."""
    if not options:
        return
    known = _kafka_names() | {USER, PASSWORD}
    for name in options:
        if name not in known:
            yield f'kafka.options."{name}": Kafka does not know this option{_meant(name, known)}'


def _meant(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.85)
    return f": did you mean {close[0]}?" if close else " and ignores it"


def _spark_names() -> set[str]:
    jars = sorted(pyspark_jars().glob("spark-*.jar"))
    declared = set(_texts(jars, _SPARK_CLASSES, re.compile(rb"spark\.[A-Za-z][\w.\-]*")))
    delta = _texts(cached(SPARK), _DELTA_CLASSES, re.compile(rb"[a-z][A-Za-z]*(\.[A-Za-z]+)*"))
    return declared | {f"{_DELTA}{name}" for name in delta}


def _kafka_names() -> set[str]:
    return set(_texts(cached(SPARK), _KAFKA_CLASSES, re.compile(rb"[a-z]+(\.[a-z0-9]+)+")))


def _texts(jars: Iterable[Path], classes: re.Pattern[str], text: re.Pattern[bytes]) -> set[str]:
    """The constants of such a form in these classes: tag 1, two bytes of length, the text."""
    constant, found = re.compile(rb"\x01(..)(?=(" + text.pattern + rb"))", re.DOTALL), set[str]()
    for jar in jars:
        with zipfile.ZipFile(jar) as archive:
            for name in archive.namelist():
                if classes.search(name):
                    for match in constant.finditer(archive.read(name)):
                        size = int.from_bytes(match[1])
                        if len(match[2]) >= size:
                            found.add(match[2][:size].decode())
    return found
