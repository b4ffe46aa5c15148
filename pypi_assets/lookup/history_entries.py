"""The form of an entry of a project's history, as programs get it."""

from typing import TypedDict


class HistoryEntry(TypedDict):
    """One thing that happened at `serial`. Times are ISO 8601 in UTC.

    `kind` is the action of an event, the cause of a change without one, or `visit`. `live` and `away` are the files
    that became live or ceased to be, `yanked` and `unyanked` those that were live before and after. `epoch` is that of
    the serial; null: it is not complete. An observed event happened between `not_before` and `at`.
    """

    serial: int
    at: str | None
    kind: str
    text: str
    version: str | None
    filenames: list[str]
    visit: int | None
    outcome: str | None
    error: str | None
    live: list[str]
    away: list[str]
    yanked: list[str]
    unyanked: list[str]
    epoch: int | None
    not_before: str | None
