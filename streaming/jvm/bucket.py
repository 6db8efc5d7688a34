"""Spark's settings for a state in a bucket: Hadoop's S3A under the scheme that deltalake uses."""

from connectors.jars import S3, cached
from connectors.log_store import CLASS
from streaming.core.access.root import BucketRoot, StateRoot
from streaming.jvm.class_path import class_path

_S3A = "spark.hadoop.fs.s3a"
_OF_KEYS = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"


def bucket_settings(root: StateRoot) -> dict[str, str]:
    """What Spark needs to reach the state; nothing for a folder.

    Commits go through our log store, because Delta's own for S3 lets the later of two writers of
    one log entry replace the first.
    """
    if not isinstance(root, BucketRoot):
        return {}
    access = root.access
    given = {
        f"{_S3A}.endpoint": access.endpoint,
        f"{_S3A}.endpoint.region": access.region,
        f"{_S3A}.path.style.access": "true" if access.endpoint else None,
        f"{_S3A}.connection.ssl.enabled": "false" if access.is_plain else None,
        f"{_S3A}.access.key": access.access_key_id,
        f"{_S3A}.secret.key": access.secret_access_key,
        f"{_S3A}.aws.credentials.provider": _OF_KEYS if access.access_key_id else None,
    }
    return {
        "spark.jars": ",".join(jar.as_uri() for jar in [*class_path(), *cached(S3)]),
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.delta.logStore.s3.impl": CLASS,
        f"{_S3A}.fast.upload.buffer": "bytebuffer",  # on disk it insists on Hadoop's local files
        **{name: value for name, value in given.items() if value is not None},
    }
