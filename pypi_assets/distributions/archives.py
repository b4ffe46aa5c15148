"""What the readers of zips and tars share: the names of members, and what is kept of their content.

Nothing is unpacked: member names are names and never become paths of this machine.
"""

from collections.abc import Sequence

from pypi_assets.distributions.extracts import Extract
from pypi_assets.distributions.limits import Budget
from pypi_assets.distributions.members import by_folder
from pypi_assets.distributions.metadata import headers_of


class SafeNames:
    """Collects safe member names, each once, and counts the others."""

    def __init__(self, extract: Extract, budget: Budget) -> None:
        self._extract = extract
        self._budget = budget
        self._names: dict[str, None] = {}
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
        if name in self._names:
            self._repeated += 1
        else:
            self._names[name] = None
        return name

    def add_all(self, names: list[str]) -> Sequence[str | None]:
        """What `add` gives for each of `names`, of which those that end in / are folders; many times as fast."""
        lines = "\n".join((*names, ""))
        new = dict.fromkeys(names)
        # what sorts before "0" may start with a dot or a slash, or be empty
        if (
            "/." in lines
            or "//" in lines
            or "\0" in lines
            or min(names, default="0") < "0"
            or len(new) < len(names)
            or not self._names.keys().isdisjoint(new)
        ):
            cut = (name.partition("\0")[0] for name in names)  # zipfile, and so an installer, ends a name at a NUL
            return [self.add(name, is_file=not name.endswith("/")) for name in cut]
        self._budget.count_members(names)
        if "/\n" not in lines:
            self._names |= new
            return names
        self._names.update(dict.fromkeys([name for name in names if not name.endswith("/")]))
        return [None if name.endswith("/") else name for name in names]

    def finish(self) -> None:
        """Puts the names into the extract, and notes about them."""
        self._extract.members = dict(by_folder(self._names))
        if self._unsafe:
            self._extract.notes.append(f"{self._unsafe} member names that lead out of the archive are ignored")
        if self._repeated:
            self._extract.notes.append(f"{self._repeated} member names occur again; the last one counts")
        folded = "//".join(self._names).casefold().split("//")  # all at once, as `//` is in no safe name
        if colliding := len(folded) - len(set(folded)):
            self._extract.notes.append(f"{colliding} member names differ from another one by case alone")


def keep(extract: Extract, name: str, content: bytes, budget: Budget) -> None:
    """Adds a wanted file to `extract`, of core metadata the headers alone. Raises LimitExceededError."""
    kept = trimmed(name, content)
    budget.count_kept(len(kept))
    extract.files[name] = kept


def trimmed(name: str, content: bytes) -> bytes:
    """What is kept of a wanted file: of core metadata the headers, since nothing is made of the description."""
    return headers_of(content) if name.rpartition("/")[2] in {"METADATA", "PKG-INFO"} else content
