"""Reads the pause that an answer's RateLimit headers ask for.

Three forms of the headers are in use, one for each stage of their draft (draft-ietf-httpapi-ratelimit-headers):

    RateLimit: "hour";r=12;t=600                 with RateLimit-Policy: "hour";q=3600;w=3600
    RateLimit: limit=3600, remaining=12, reset=600
    RateLimit-Remaining: 12, RateLimit-Reset: 600, RateLimit-Limit: 3600

How a client waits does not belong here; see `rate.py`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

LONGEST_RESET_S = 86_400
"""A longer time until a reset is ignored. Some servers send the time of day there, in unix seconds."""
_SCARCE_SHARE = 10
"""Calls are spread over the time until the reset once less than a tenth of the quota remains."""
_SCARCE_CALLS = 10
"""The same, if the quota is unknown."""
_MOST_CHARACTERS = 2_000
_MOST_DIGITS = 15


@dataclass(frozen=True, slots=True)
class RateAllowance:
    """One limit of an answer: the calls that remain until its reset in `reset_s` seconds, and its quota if known."""

    remaining: int
    reset_s: int
    quota: int | None = None

    @property
    def pause_s(self) -> float:
        """Return the pause before the next call, in seconds; 0 if enough calls remain."""
        scarce = _SCARCE_CALLS if self.quota is None else max(self.quota // _SCARCE_SHARE, 1)
        return self.reset_s / (self.remaining + 1) if self.remaining < scarce else 0.0


def pause_of(headers: Mapping[str, str]) -> float:
    """Return the pause in seconds before the next call, by the tightest limit; 0 if the headers ask for none.

    Values that are not plausible are ignored: negative and very long numbers, other text, and a reset that is more than
    a day away.

    >>> pause_of({"RateLimit": '"hour";r=0;t=30'})
    30.0
    >>> pause_of({"RateLimit-Remaining": "2", "RateLimit-Reset": "30"})
    10.0
    >>> pause_of({"RateLimit": '"hour";r=-1;t=soon'})
    0.0
    """
    return max((allowance.pause_s for allowance in allowances(headers)), default=0.0)


def allowances(headers: Mapping[str, str]) -> list[RateAllowance]:
    """Return the limits that the newest form of the headers states, as far as their values are plausible."""
    current = headers.get("RateLimit", "")[:_MOST_CHARACTERS]
    if current:
        quotas = dict(_quotas(headers.get("RateLimit-Policy", "")[:_MOST_CHARACTERS]))
        found = list(_listed(current, quotas))
        return found or _allowance(_members(current.split(",")), "remaining", "reset", "limit")
    single = {name: _first(headers.get(f"RateLimit-{name}", "")) for name in ("Remaining", "Reset", "Limit")}
    return _allowance(single, "Remaining", "Reset", "Limit")


def _listed(value: str, quotas: Mapping[str, int]) -> Iterator[RateAllowance]:
    """Yield the limits of a list such as `"burst";r=9;t=1, "day";r=100;t=3000`."""
    for item in value.split(","):
        name, *parameters = item.split(";")
        yield from _allowance(_members(parameters), "r", "t", quota=quotas.get(name.strip()))


def _quotas(policy: str) -> Iterator[tuple[str, int]]:
    """Yield the names and quotas of a list such as `"burst";q=10;w=1, "day";q=5000;w=86400`."""
    for item in policy.split(","):
        name, *parameters = item.split(";")
        quota = _count(_members(parameters).get("q", ""))
        if quota:
            yield name.strip(), quota


def _members(parts: list[str]) -> dict[str, str]:
    pairs = (part.partition("=") for part in parts)
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _allowance(
    values: Mapping[str, str], remaining: str, reset: str, limit: str = "", quota: int | None = None
) -> list[RateAllowance]:
    """Return the limit that `values` state under these names, or nothing if one of its numbers is not plausible."""
    left, reset_s = _count(values.get(remaining, "")), _count(values.get(reset, ""))
    if left is None or reset_s is None or reset_s > LONGEST_RESET_S:
        return []
    return [RateAllowance(left, reset_s, quota or _count(values.get(limit, "")) or None)]


def _first(value: str) -> str:
    """Return the first item of a list, without its parameters: older drafts write `100, 100;w=60`."""
    return value[:_MOST_CHARACTERS].partition(",")[0].partition(";")[0].strip()


def _count(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if is_number else None
