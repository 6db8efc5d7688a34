"""When the certificates expire that Kafka's options name: PEM files, of any number of them each."""

import re
import ssl
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

OPTIONS = ("ssl.truststore.location", "ssl.keystore.location")
_PEM = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17


def expiries(options: Mapping[str, str]) -> dict[str, float]:
    """Option -> when the first certificate in its file expires, in seconds since 1970.

    A file that cannot be read is left out: whoever connects with it says what is wrong.
    """
    found = {}
    for name in OPTIONS:
        times = list(_expiries_in(Path(options[name]))) if name in options else []
        if times:
            found[name] = min(times)
    return found


def _expiries_in(file: Path) -> Iterator[float]:
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return
    for pem in _PEM.findall(text):
        try:
            yield not_after(ssl.PEM_cert_to_DER_cert(pem)).timestamp()
        except (ValueError, IndexError, StopIteration):
            continue


def not_after(der: bytes) -> datetime:
    """The end of a certificate's validity (RFC 5280, 4.1); an error if it is none.

    Certificate is a sequence whose first part has: version (optional), serial number, signature,
    issuer, and then the validity, a sequence of two times.
    """
    certificate = next(_parts(der))[1]
    fields = [part for tag, part in _parts(next(_parts(certificate))[1]) if tag != _VERSION]
    _, (tag, text) = _parts(fields[3])
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text.decode("ascii"), form).replace(tzinfo=UTC)


def _parts(der: bytes) -> Iterator[tuple[int, bytes]]:
    """The tag and the content of each element."""
    place = 0
    while place < len(der):
        tag, length = der[place], der[place + 1]
        place += 2
        if length & 0x80:
            count = length & 0x7F
            length = int.from_bytes(der[place : place + count], "big")
            place += count
        yield tag, der[place : place + length]
        place += length
