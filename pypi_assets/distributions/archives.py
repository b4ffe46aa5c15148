"""What the readers of zips and tars share: the names of members, and what is kept of their content.

Nothing is unpacked: member names are names and never become paths of this machine.
"""

import re
from collections.abc import Sequence

from pypi_assets.distributions.extracts import Extract
from pypi_assets.distributions.limits import Budget
from pypi_assets.distributions.metadata import headers_of

_ODD = re.compile("/[./\n]")
_ODD_FILE = re.compile("/[./]")
"""What is in no name that needs no cleaning, and in few others."""


class Members:
    """Collects safe member names, each once, and counts the others."""

    def __init__(self, extract: Extract, budget: Budget) -> None:
        self._extract = extract
        self._budget = budget
        self._seen: set[str] = set()
        self._unsafe = 0
        self._repeated = 0

    def add(self, written: str, *, is_file: bool) -> str | None:
        """The cleaned name of a file, or None for folders and for names that lead out of the archive."""
        self._budget.count_member(written)
        if not is_file:
            return None
        name = written
        if written < "0" or "/." in written or "//" in written:  # all others are clean
            parts = [part for part in written.split("/") if part not in {"", "."}]
            if written.startswith("/") or ".." in parts or not parts:
                self._unsafe += 1
                return None
            name = "/".join(parts)
        if name in self._seen:
            self._repeated += 1
        else:
            self._seen.add(name)
            self._extract.members.append(name)
        return name

    def add_all(self, names: list[str]) -> Sequence[str | None]:
        """What `add` gives for each of `names`, of which those that end in / are folders; many times as fast."""
        lines = "\n".join((*names, ""))
        new = set(names)
        is_odd = _ODD.search(lines)
        has_folders = is_odd is not None
        if has_folders:
            is_odd = _ODD_FILE.search(lines)
        # what sorts before "0" may start with a dot or a slash, or be empty
        if (
            is_odd
            or "\0" in lines
            or min(names, default="0") < "0"
            or len(new) < len(names)
            or not self._seen.isdisjoint(new)
        ):
            cut = (name.partition("\0")[0] for name in names)  # zipfile, and so an installer, ends a name at a NUL
            return [self.add(name, is_file=not name.endswith("/")) for name in cut]
        self._budget.count_members(names)
        self._seen |= new
        if not has_folders:
            self._extract.members += names
            return names
        self._extract.members += [name for name in names if not name.endswith("/")]
        return [None if name.endswith("/") else name for name in names]

    def finish(self) -> None:
        if self._unsafe:
            self._extract.notes.append(f"{self._unsafe} member names that lead out of the archive are ignored")
        if self._repeated:
            self._extract.notes.append(f"{self._repeated} member names occur again; the last one counts")
        if colliding := len(self._extract.members) - len(set(map(str.casefold, self._extract.members))):
            self._extract.notes.append(f"{colliding} member names differ from another one by case alone")


def keep(extract: Extract, name: str, content: bytes, budget: Budget) -> None:
    """Adds a wanted file to `extract`, of core metadata the headers alone. Raises LimitExceededError."""
    kept = trimmed(name, content)
    budget.count_kept(len(kept))
    extract.files[name] = kept


def trimmed(name: str, content: bytes) -> bytes:
    """What is kept of a wanted file: of core metadata the headers, since nothing is made of the description."""
    return headers_of(content) if name.rpartition("/")[2] in {"METADATA", "PKG-INFO"} else content
