"""Where the state of a hub is: a folder, or a prefix in a bucket of S3-compatible storage."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

S3 = "s3://"


@dataclass(frozen=True, slots=True)
class S3Access:
    """How a bucket is reached; `endpoint` None: Amazon's. Without keys the environment's count."""

    endpoint: str | None = None
    region: str = "us-east-1"
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)


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


def parse_bucket(text: str) -> BucketRoot | None:
    """The bucket and prefix that s3://bucket/prefix names; None if one of them is missing."""
    bucket, _, prefix = text.removeprefix(S3).partition("/")
    prefix = prefix.strip("/")
    return BucketRoot(bucket, prefix) if bucket and prefix and "//" not in prefix else None
