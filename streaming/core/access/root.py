"""Where the state of a hub is: a folder, or a prefix in a bucket of S3-compatible storage."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

S3 = "s3://"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
_NO_LOGIN = (
    "an address with keys would be shown wherever the state is named: give s3://bucket/prefix, and"
    " the keys as s3.access_key_id and SLACKWATER_S3__SECRET_ACCESS_KEY"
)


@dataclass(frozen=True, slots=True)
class S3Access:
    """How a bucket is reached; `endpoint` None: Amazon's. Without keys the environment's count."""

    endpoint: str | None = None
    region: str = "us-east-1"
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)

    @property
    def is_plain(self) -> bool:
        """Whether its connections are not encrypted."""
        return (self.endpoint or "").startswith("http://")


@dataclass(frozen=True, slots=True)
class BucketRoot:
    """A prefix in a bucket."""

    bucket: str
    prefix: str
    access: S3Access = S3Access()

    def __str__(self) -> str:
        return f"{S3}{self.bucket}/{self.prefix}"

    @property
    def name(self) -> str:
        """The prefix as the name of a folder, for what a machine keeps beside it."""
        return f"{self.bucket}-{self.prefix.replace('/', '-')}"


StateRoot: TypeAlias = Path | BucketRoot


def is_address(text: str) -> bool:
    """Return whether a text has a scheme, as s3://bucket has: it is not meant to be a path."""
    return _ADDRESS.match(text) is not None


def parse_root(text: str) -> StateRoot:
    """The folder, or the bucket and prefix, that is named; ValueError, with what to give.

    An address that is no bucket's would be a folder of that name on this machine.
    """
    if not is_address(text):
        return Path(text)
    if not text.startswith(S3):
        raise ValueError("give the path of a folder, or s3://bucket/prefix")
    bucket, _, prefix = text.removeprefix(S3).partition("/")
    prefix = prefix.strip("/")
    if "@" in bucket or (":" in bucket and "@" in prefix):
        raise ValueError(_NO_LOGIN)
    if not bucket or not prefix or "//" in prefix:
        raise ValueError("give a bucket and a prefix, as s3://bucket/prefix")
    return BucketRoot(bucket, prefix)
