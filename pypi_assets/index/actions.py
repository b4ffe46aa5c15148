"""Classifies changelog actions by how they change a project's files.

Actions in the changelog are free text. File patterns are matched first, since a role change looks similar (`add Owner
x`). An action that changes no file is either *ignored* (roles, old bookkeeping) or *unknown*, which is counted. The
consequences of the changes are computed in `catalog/derived/file_history.py`.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from pypi_assets.index.models import LONGEST_NAME, ChangelogEvent


class Action(StrEnum):
    """The ways in which an event changes a project's files."""

    ADD_FILE = "add file"
    REMOVE_FILE = "remove file"
    REMOVE_RELEASE = "remove release"
    REMOVE_PROJECT = "remove project"
    QUARANTINE_PROJECT = "quarantine project"
    UNQUARANTINE_PROJECT = "unquarantine project"
    QUARANTINE_RELEASE = "quarantine release"
    UNQUARANTINE_RELEASE = "unquarantine release"
    YANK_RELEASE = "yank release"
    UNYANK_RELEASE = "unyank release"
    YANK_FILE = "yank file"
    UNYANK_FILE = "unyank file"
    CREATE_PROJECT = "create project"
    IGNORED = "ignored"
    UNKNOWN = "unknown"


NO_FILE_CHANGE = frozenset({Action.CREATE_PROJECT, Action.IGNORED, Action.UNKNOWN})

# The Python version of an upload is free text. It can be empty, or contain spaces and even ` file `, so the last ` file
# ` counts.
_ADD_FILE = re.compile(rf"add (?:.* )?file (?P<filename>.{{1,{LONGEST_NAME}}})")
_REMOVE_FILE = re.compile(r"remove file (?P<filename>.++)")
# An index without serials can show single files of a release as yanked (PEP 592). PyPI yanks whole releases only.
_YANK_FILE = re.compile(r"(?P<un>un)?yank file (?P<filename>.++)")
_EXACT = {
    "create": Action.CREATE_PROJECT,
    "remove project": Action.REMOVE_PROJECT,
    "remove release": Action.REMOVE_RELEASE,
    "project quarantined": Action.QUARANTINE_PROJECT,
    "project quarantine cleared": Action.UNQUARANTINE_PROJECT,
    "release quarantined": Action.QUARANTINE_RELEASE,
    "release quarantine cleared": Action.UNQUARANTINE_RELEASE,
    "yank release": Action.YANK_RELEASE,
    "unyank release": Action.UNYANK_RELEASE,
    "new release": Action.IGNORED,
    "docupdate": Action.IGNORED,
    "docdestroy": Action.IGNORED,
    "keyrotate": Action.IGNORED,
}
_IGNORED = re.compile(
    r"(add|remove) (Owner|Maintainer|url|alternate repository)\b"
    r"|(change|invite|accepted|revoke_invite|rename from|update|nuke user|docupdate|keyrotate)\b"
    r"|(add|remove|transfer|create|decline|cancel|expire)\b.*\b(role|organization|team|trusted publisher|invitation)\b"
)


@dataclass(frozen=True, slots=True)
class FileChange:
    """The meaning of one event: the action, and the filename if the action concerns a single file."""

    action: Action
    filename: str | None = None


def file_change(event: ChangelogEvent) -> FileChange:
    """Return how `event` changes its project's files, according to PyPI's table of actions.

    A release action without a version does not name a release. It counts as unknown, never as an action on the whole
    project.

        >>> file_change(ChangelogEvent("demo", "1.0", 0, "add source file demo-1.0.tar.gz", 7))
        FileChange(action=<Action.ADD_FILE: 'add file'>, filename='demo-1.0.tar.gz')
    """
    if match := _ADD_FILE.fullmatch(event.action):
        return FileChange(Action.ADD_FILE, match["filename"])
    if match := _REMOVE_FILE.fullmatch(event.action):
        return FileChange(Action.REMOVE_FILE, match["filename"])
    if match := _YANK_FILE.fullmatch(event.action):
        return FileChange(Action.UNYANK_FILE if match["un"] else Action.YANK_FILE, match["filename"])
    if event.action == "remove":
        return FileChange(Action.REMOVE_PROJECT if event.version is None else Action.REMOVE_RELEASE)
    action = _EXACT.get(event.action)
    if action is None:
        return FileChange(Action.IGNORED if _IGNORED.match(event.action) else Action.UNKNOWN)
    if action.value.endswith(" release") and event.version is None:
        return FileChange(Action.UNKNOWN)
    return FileChange(action)
