"""The name of a place: a folder or a bucket, and never one that is taken for the other."""

from pathlib import Path

import pytest

from checkpoints.root import is_inside
from streaming.core.access.root import BucketRoot, parse_root


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("state", Path("state")),
        ("/var/lib/state", Path("/var/lib/state")),
        ("a:b", Path("a:b")),
        ("s3://bucket/prefix", BucketRoot("bucket", "prefix")),
        ("s3://bucket/a/b/", BucketRoot("bucket", "a/b")),
    ],
)
def test_a_name_is_a_folder_or_a_bucket(text: str, root: Path | BucketRoot) -> None:
    """As it is written: no folder is made absolute here."""
    assert parse_root(text) == root


@pytest.mark.parametrize(
    "text", ["s3a://bucket/p", "S3://bucket/p", "s3:/bucket/p", "gs://b/p", "file:///var/state"]
)
def test_another_address_is_no_folder(text: str) -> None:
    """A copy would be made in a folder `s3a:`, of a disk that nobody keeps."""
    with pytest.raises(ValueError, match="give the path of a folder, or s3://bucket/prefix"):
        parse_root(text)


@pytest.mark.parametrize("text", ["s3://", "s3://bucket", "s3://bucket/", "s3://bucket/a//b"])
def test_a_bucket_is_named_with_a_prefix(text: str) -> None:
    """Several hubs share a bucket, and an empty part of a path is no part elsewhere."""
    with pytest.raises(ValueError, match="give a bucket and a prefix"):
        parse_root(text)


@pytest.mark.parametrize(
    ("place", "is_in"),
    [
        ("s3://lake/hub", True),
        ("s3://lake/hub/copy", True),
        ("s3://lake/hub2", False),
        ("s3://other/hub/copy", False),
        ("/lake/hub/copy", False),
    ],
)
def test_what_is_inside_of_a_state_is_known(place: str, is_in: bool) -> None:  # noqa: FBT001
    """A copy in it would be lost with it."""
    assert is_inside(parse_root(place), parse_root("s3://lake/hub")) is is_in
    folder = place.replace("s3:/", "")
    assert is_inside(Path(folder), Path("/lake/hub")) is (is_in or place == "/lake/hub/copy")
