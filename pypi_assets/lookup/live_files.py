"""The form of a live file, as programs get it."""

from typing import TypedDict


class LiveFileResult(TypedDict):
    """One distribution as it was live at a serial.

    It is live since the serial `live_since`. `size` is in bytes, and `outcome` is the outcome of reading the file.
    """

    filename: str
    project: str
    version: str
    kind: str
    sha256: str | None
    yanked: bool
    size: int | None
    uploaded_at: str | None
    requires_python: str | None
    live_since: int
    outcome: str
    url: str | None
