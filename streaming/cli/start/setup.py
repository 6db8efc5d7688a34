"""`setup`: what an installed package needs once on each machine."""

from streaming.cli.output import write_line


def setup() -> None:
    """Fetch the jars of Spark and Kafka into the cache; afterwards nothing is downloaded.

    Also writes the archive of Spark's classes, with which hubs start seconds faster.
    """
    from connectors.jars import cache_folder, fill_all  # noqa: PLC0415  # only this needs them
    from streaming.jvm.class_archive import write_once  # noqa: PLC0415
    from streaming.jvm.java import check_java  # noqa: PLC0415

    check_java()
    fill_all()
    write_once()
    write_line(f"ready: the jars are in {cache_folder()}")
