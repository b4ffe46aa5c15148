"""The content of a project's page at each of its visits, and its snapshots as a catalog stores them.

A snapshot is the full value, or its difference from an earlier one, by the rules of catalog/observed/snapshots.py. Here
it is made from the changes instead of a comparison of all files, which takes a fraction of the time.
"""

from bisect import insort
from dataclasses import dataclass, field

from pypi_assets.catalog.observed.snapshots import LARGEST_SHARE, LONGEST_CHAIN


@dataclass(slots=True)
class MadeFile:
    """A file of a project: its ids, and its properties on the page."""

    id: int
    filename: str
    sha256: str
    release: int
    start: int
    period: int


@dataclass(frozen=True, slots=True)
class _StoredSnapshot:
    """A stored snapshot: `base` is None if `content` is the full value. `changed` are filenames."""

    id: int
    number: int
    content: bytes
    base: int | None
    changed: frozenset[str]


@dataclass(slots=True)
class Showing:
    """The content of the project's page: the entries of a snapshot by filename, and their filenames in order.

    `stored` are the snapshots since the last full value, in the form of catalog/observed/snapshots.py.
    """

    entries: dict[str, bytes] = field(default_factory=dict)
    ordered: list[str] = field(default_factory=list)
    stored: list[_StoredSnapshot] = field(default_factory=list)
    changed: set[str] = field(default_factory=set)

    def show(self, file: MadeFile, *, yanked: bool = False) -> None:
        if file.filename not in self.entries:
            insort(self.ordered, file.filename)
        flag = "true" if yanked else "false"
        self.entries[file.filename] = f'["{file.filename}","{file.sha256}",{flag}]'.encode()
        self.changed.add(file.filename)

    def hide(self, file: MadeFile) -> None:
        del self.entries[file.filename]
        self.ordered.remove(file.filename)
        self.changed.add(file.filename)

    @property
    def content(self) -> bytes:
        """Return the full value, whose hash names the snapshot."""
        return b"[" + b",".join([self.entries[name] for name in self.ordered]) + b"]"

    def store(self, id_: int, full: bytes) -> _StoredSnapshot:
        """Return the stored form of a new snapshot."""
        number = len(self.stored)
        base = number & (number - 1)
        content, base_id = full, None
        if number and number.bit_count() <= LONGEST_CHAIN:
            since = (one.changed for one in self.stored[base + 1 :])
            names = sorted(self.changed.union(*since))
            gone = ",".join(f'"{name}"' for name in names if name not in self.entries)
            changed = b",".join([self.entries[name] for name in names if name in self.entries])
            difference = b"[[" + gone.encode() + b"],[" + changed + b"]]"
            if len(difference) <= len(full) * LARGEST_SHARE:
                content, base_id = difference, self.stored[base].id
        if base_id is None:
            self.stored, number = [], 0
        made = _StoredSnapshot(id_, number, content, base_id, frozenset(self.changed))
        self.stored.append(made)
        self.changed.clear()
        return made
