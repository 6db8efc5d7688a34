"""`setup`: what an installed package needs once on each machine."""

from typing import Annotated

import typer

from streaming.terminal.output import write_line

ForBucket = Annotated[
    bool, typer.Option("--bucket", help="Also what a hub with its state in a bucket needs.")
]


def setup(*, bucket: ForBucket = False) -> None:
    """Fetch the jars of Spark and Kafka into the cache; afterwards nothing is downloaded.

    Also writes the archive of Spark's classes, with which hubs start seconds faster.
    """
    from connectors.jar_fetch import fill_all  # noqa: PLC0415  # only this needs them
    from connectors.jars import cache_folder  # noqa: PLC0415
    from streaming.jvm.class_archive import write_once  # noqa: PLC0415
    from streaming.jvm.java import check_java  # noqa: PLC0415

    check_java()
    fill_all(bucket=bucket)
    write_once()
    write_line(f"ready: the jars are in {cache_folder()}")
