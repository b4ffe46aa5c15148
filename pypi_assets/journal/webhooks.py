"""Webhooks: the URLs that changes are posted to, the filters of records, and the signature that proves the sender.

The setting PYPI_ASSETS_WEBHOOKS is a JSON list of webhooks. What is posted when is decided in `delivering.py`.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson

from pypi_assets.errors import SettingsError
from pypi_assets.index.addresses import AddressRule, ForbiddenAddressError, is_public
from pypi_assets.index.connections import Connections, Network
from pypi_assets.index.credentials import IndexCredentials
from pypi_assets.index.errors import PackageIndexError, RefusedError, requested_pause_s
from pypi_assets.index.transport import HEADS_SHARE, Timeouts, Transport
from pypi_assets.index.urls import HostRule, split_fetchable
from pypi_assets.journal.filters import FilterError, RecordFilter

SETTING = "PYPI_ASSETS_WEBHOOKS"
ALLOWING = "PYPI_ASSETS_WEBHOOKS_PRIVATE=1"
TIMESTAMP_HEADER, SIGNATURE_HEADER = "X-Pypi-Assets-Timestamp", "X-Pypi-Assets-Signature"
DELIVERY_HEADER = "X-Pypi-Assets-Delivery"
TIMEOUT_S = 15.0
WEBHOOKS_ACCEPTS = (
    'a JSON list of objects with url, secret or secret_file, and optionally name and filter: {"project": [...],'
    ' "kind": [...], "stream": [...], "module": [...], "gained": [...]}'
)
_LEAST_SECRET = 16
_FIELDS = frozenset({"name", "url", "filter", "secret", "secret_file"})
_RECEIVED = range(200, 300)
_MOST_AT_ONCE = 64
_LONGEST_RETRY_AFTER_S = 3_600.0


@dataclass(frozen=True)
class Webhook:
    """A receiver of changes."""

    name: str
    url: str
    wanted: RecordFilter
    secret: str = field(repr=False)

    @property
    def consumer(self) -> str:
        """Its name as a consumer of the journal."""
        return consumer_of(self.name)


def consumer_of(name: str) -> str:
    """Return a webhook's name as a consumer of the journal."""
    return f"webhook {name}"


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """The reason why a delivery was not received.

    `retry_after_s` is the pause in seconds that the receiver asks for.
    """

    text: str
    retry_after_s: float = 0.0


def parse_webhooks(text: str) -> list[Webhook]:
    """Return the webhooks of the setting. Raises SettingsError, whose message contains no secret."""
    try:
        found = orjson.loads(text) if text.strip() else []
    except orjson.JSONDecodeError as error:
        raise _wrong(f"it is not JSON: {error.msg} in line {error.lineno}") from None
    if not isinstance(found, list) or not all(isinstance(fields, dict) for fields in found):
        raise _wrong("it is not a list of objects")
    webhooks = [_parsed(number, fields) for number, fields in enumerate(found, 1)]
    names = [webhook.name for webhook in webhooks]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise _wrong(f"two webhooks have the name {twice[0]!r}: give each its own name")
    return webhooks


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return the signature header: HMAC-SHA256 with the secret over the timestamp, a dot and the body.

    A receiver computes the same value, compares both with `hmac.compare_digest`, and rejects old timestamps.
    """
    return "sha256=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()


class Sender:
    """Posts to receivers, connecting only to checked addresses."""

    def __init__(self, network: Network, *, allows_private: bool, timeout_s: float = TIMEOUT_S) -> None:
        self._transport = Transport(
            HostRule(None, allow_http=True),
            IndexCredentials(),
            Connections(_PublicAddresses(allows_private=allows_private), network, kept=2),
            agent="pypi-assets",
            max_connections=_MOST_AT_ONCE,
            timeouts=Timeouts(timeout_s / HEADS_SHARE, timeout_s / HEADS_SHARE),
        )

    def post(self, webhook: Webhook, body: bytes, delivery: str, now: float) -> DeliveryFailure | None:
        """Post a body. Returns None if the receiver answers with 2xx. Redirects are not followed."""
        timestamp = str(int(now))
        headers = {
            "Content-Type": "application/json",
            DELIVERY_HEADER: delivery,
            TIMESTAMP_HEADER: timestamp,
            SIGNATURE_HEADER: signature(webhook.secret, timestamp, body),
        }
        try:
            with self._transport.exchange("POST", webhook.url, headers, body=body, good=_RECEIVED):
                return None
        except PackageIndexError as error:  # the URL can contain a secret
            return DeliveryFailure(error.message, min(requested_pause_s(error), _LONGEST_RETRY_AFTER_S))

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()


class _PublicAddresses(AddressRule):
    """Allows only public addresses, unless private addresses are allowed."""

    def __init__(self, *, allows_private: bool) -> None:
        super().__init__()
        self._allows_private = allows_private

    def check(self, host: str, address: str) -> None:
        if not self._allows_private and not is_public(address):
            raise ForbiddenAddressError(
                f"{host} is at {address}, which is not a public address; {ALLOWING} allows such addresses"
            )


def _parsed(number: int, fields: Mapping[str, Any]) -> Webhook:
    place = f"number {number}"
    if unknown := sorted(fields.keys() - _FIELDS):
        raise _wrong(f"{place} has an unknown field {unknown[0]!r:.100}")
    url = fields.get("url")
    if not isinstance(url, str) or not _is_http(url):
        raise _wrong(f"{place} has no http or https url")
    name = fields.get("name", _default_name(url))
    if not isinstance(name, str) or not name.strip() or not name.isprintable() or len(name) > 100:
        raise _wrong(f"{place} has a name that is not 1 to 100 printable characters")
    try:
        wanted = RecordFilter.of_fields(fields.get("filter") or {})
    except FilterError as error:
        raise _wrong(f"{place} has an invalid filter: {error}") from None
    except AttributeError:
        raise _wrong(f"{place} has a filter that is not an object") from None
    return Webhook(name, url, wanted, _secret(place, fields))


def _secret(place: str, fields: Mapping[str, Any]) -> str:
    secret, path = fields.get("secret"), fields.get("secret_file")
    if (secret is None) == (path is None):
        raise _wrong(f"{place} must have either secret or secret_file")
    if path is not None:
        try:
            secret = Path(str(path)).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError, RuntimeError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise _wrong(f"{place}: cannot read {path}: {reason}") from None
    if not isinstance(secret, str) or len(secret) < _LEAST_SECRET:
        raise _wrong(f"{place} has a secret of fewer than {_LEAST_SECRET} characters")
    return secret


def _default_name(url: str) -> str:
    """Return the host with some digits that distinguish several receivers on it."""
    return f"{urlsplit(url).hostname} {hashlib.sha256(url.encode()).hexdigest()[:8]}"


def _is_http(url: str) -> bool:
    try:
        split_fetchable(url)
        _ = urlsplit(url).port
    except (RefusedError, ValueError):
        return False
    return "@" not in urlsplit(url).netloc


def _wrong(text: str) -> SettingsError:
    return SettingsError(f"{SETTING}: {text}; it accepts {WEBHOOKS_ACCEPTS}")
