"""The format of times in output."""

from datetime import UTC, datetime


def utc_text(unix_seconds: float | None) -> str | None:
    """Return ISO 8601 in UTC, to the second: `2026-03-03T12:00:00Z`, or None if the time is unknown."""
    return None if unix_seconds is None else datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
