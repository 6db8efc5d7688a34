"""Claims about the options that every JVM of ours has, whatever its machine or its user says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.jvm.java import java_command, java_environment
from streaming.jvm.pins import PINS, pinned, pinned_environment

FOREIGN = (
    "-Duser.language=ar -Duser.country=EG -Duser.language.format=ar -Duser.extensions=u-nu-arab"
    " -Duser.timezone=Asia/Kolkata -Dfile.encoding=ISO-8859-6"
)
SHOW = ["-XshowSettings:all", "-version"]

SESSION = f"""
from streaming.jvm.private import jvm
from streaming.jvm.session import session
spark = session("abroad", {{"spark.driver.memory": "700m",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 {FOREIGN}"}})
java = jvm(spark).java
print(java.util.Locale.getDefault().toLanguageTag(), java.util.TimeZone.getDefault().getID(),
      java.nio.charset.Charset.defaultCharset().name())
print(spark.sparkContext.getConf().get("spark.executor.extraJavaOptions"))
"""


@pytest.mark.parametrize("variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"])
def test_a_java_of_ours_is_of_no_country(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of these variables reaches the JVM by another way, and one of them counts over all."""
    monkeypatch.setenv(variable, FOREIGN)

    done = subprocess.run(
        java_command(*SHOW), env=java_environment(), capture_output=True, check=True
    )

    said = {line.strip() for line in done.stderr.decode().splitlines()}
    assert "default locale = English (United States)" in said
    assert {"user.timezone = UTC", "file.encoding = UTF-8", "user.language.format = en"} <= said


def test_the_environment_of_a_java_keeps_what_is_not_pinned() -> None:
    """A proxy stands in the same variable."""
    found = pinned_environment({"_JAVA_OPTIONS": "-Dhttps.proxyPort=9", "HOME": "/root"})

    assert found["_JAVA_OPTIONS"] == f"-Dhttps.proxyPort=9 {' '.join(PINS)}"
    assert found["HOME"] == "/root"


def test_a_user_keeps_options_and_the_pins_come_last() -> None:
    """Of two options of one name Java takes the last."""
    assert pinned("-Xss4m -Duser.language=ar") == f"-Xss4m -Duser.language=ar {' '.join(PINS)}"


@pytest.mark.spark
def test_a_session_is_of_no_country_whatever_its_user_configured(tmp_path: Path) -> None:
    """Options of `[spark]` stand behind ours; executors get the same pins."""
    foreign = {"JAVA_TOOL_OPTIONS": FOREIGN, "LC_ALL": "ar_EG.UTF-8", "TZ": "Asia/Kolkata"}

    done = subprocess.run(
        [sys.executable, "-c", SESSION],
        cwd=tmp_path,
        env=os.environ | foreign,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )

    of_driver, of_executors = done.stdout.splitlines()
    assert of_driver == "en-US UTC UTF-8"
    assert of_executors.endswith(" ".join(PINS))


def test_the_image_pins_the_java_that_spark_starts_in_it() -> None:
    """On Kubernetes the JVM is there before the hub is."""
    entrypoint = (Path(__file__).parents[3] / "deploy/docker/entrypoint.sh").read_text("utf-8")

    assert entrypoint.count("from streaming.jvm.pins import PINS; print(*PINS)") == 1
    assert 'export SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS:-} $(pins)"' in entrypoint
    assert 'java "${options[@]}" $(pins)' in entrypoint
