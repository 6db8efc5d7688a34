"""Writes `connectors/jars.lock`: each jar of each set with its hash, as Maven's POMs name them."""

import hashlib
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from connectors.jar_fetch import run_ivy
from connectors.jars import KAFKA, LOCK, S3, SPARK, JarSet, pyspark_jars


def write() -> None:
    """Resolve all sets; JarsError: one could not be fetched."""
    lines = [line for jars in (KAFKA, SPARK, S3) for line in sorted(_resolved(jars))]
    LOCK.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _resolved(jars: JarSet) -> Iterator[str]:
    """The lines of a set, from files that Ivy has compared with the repository's checksums."""
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        (scratch / "ivy.xml").write_text(_module(jars), encoding="utf-8")
        pattern = scratch / "fetched" / "[organisation]" / "[artifact]" / "[revision].[ext]"
        run_ivy(scratch, "-types", "jar", "bundle", "-retrieve", pattern)
        for file in scratch.glob("fetched/*/*/*.jar"):
            organisation, artifact = file.parent.parent.name, file.parent.name
            if not (jars.beside_pyspark and _pyspark_ships(artifact)):
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
                yield f"{jars.name} {organisation} {artifact} {file.stem} {digest}"


def _pyspark_ships(artifact: str) -> bool:
    """Return whether pyspark ships the library, in any version."""
    name = re.compile(re.escape(artifact) + r"-\d.*\.jar")
    return any(name.fullmatch(jar.name) for jar in pyspark_jars().iterdir())


def _module(jars: JarSet) -> str:
    """The Ivy file that requests the set; one file for all roots, so that versions agree."""
    wanted = "".join(
        f'<dependency org="{organisation}" name="{name}" rev="{version}" conf="default"/>'
        for organisation, name, version in jars.roots
    )
    unwanted = "".join(_exclude(*what.split("#")) for what in jars.excludes)
    return (
        f'<ivy-module version="2.0"><info organisation="slackwater" module="{jars.name}"/>'
        f"<dependencies>{wanted}{unwanted}</dependencies></ivy-module>"
    )


def _exclude(organisation: str, module: str = "*") -> str:
    return f'<exclude org="{organisation}" module="{module}"/>'
