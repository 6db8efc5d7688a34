"""Builds what a release consists of: wheel, source archive, and the jars for an image.

usage: dist.py FOLDER, which is emptied first. The wheel is built from the source archive, so
nothing that lies about in the checkout gets into it. Needs what `make develop` and
`slackwater setup --bucket` install; fetches nothing.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from connectors.jars import KAFKA, S3, SPARK, cached, folder

CHECKOUT = Path(__file__).resolve().parent.parent


def build(target: Path) -> None:
    """Fill the folder; CalledProcessError: the packages could not be built."""
    shutil.rmtree(target, ignore_errors=True)
    command: list[str | Path] = [sys.executable, "-m", "build", "--no-isolation"]
    subprocess.run([*command, "--outdir", target, CHECKOUT], check=True, stdout=subprocess.DEVNULL)
    for jars in (KAFKA, SPARK, S3):
        copy = target / "jars" / folder(jars).name
        copy.mkdir(parents=True)
        for file in cached(jars):
            shutil.copy2(file, copy)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
