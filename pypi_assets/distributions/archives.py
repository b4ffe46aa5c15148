"""Code shared by the readers of zips and tars: safe member names, and the content that an extract stores.

Nothing is unpacked. Member names are only text and never become paths on this machine.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from pypi_assets.characters import case_folding
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import Budget
from pypi_assets.distributions.members import Folder, folders_of, paths_of
from pypi_assets.distributions.metadata import headers_of

_ODD_PARTS = frozenset(("", ".", ".."))
_ODD_OR_FOLDER = re.compile(r"/(?:[/\n]|\.\.?[/\n])")
_ODD_PART = re.compile(r"/(?:/|\.\.?[/\n])")
_ODD_START = re.compile(r"\n(?:[/\n]|\.\.?[/\n])")
"""The patterns find empty parts, `.` and `..` in names joined by line feeds. The name of a folder ends with `/`."""


def is_odd(name: str) -> bool:
    """Check whether the name of a file has an empty part, `.` or `..`."""
    return not _ODD_PARTS.isdisjoint(name.split("/"))


def some_may_be_odd(names: Iterable[str]) -> bool:
    """Check whether any of `names` may have an empty part, `.` or `..`. This is faster than splitting every name."""
    lines = "\n".join(("", *names, ""))
    return _ODD_OR_FOLDER.search(lines) is not None or _ODD_START.search(lines) is not None


class Names(Protocol):
    """Collects the names of members. `places` maps each accepted name to the place of its last member."""

    @property
    def places(self) -> dict[str, int]: ...
    def add_all(self, names: list[str], places: list[int]) -> None: ...
    def finish(self) -> None: ...


class SafeNames:
    """Collects safe member names without duplicates and counts the rejected ones.

    `places` maps each name to the place of its last member, as the reader of the archive counts places.
    """

    def __init__(self, extract: Extract, budget: Budget) -> None:
        self.places: dict[str, int] = {}
        self._extract = extract
        self._budget = budget
        self._unsafe = 0
        self._repeated = 0

    def add(self, written: str, place: int, *, is_file: bool) -> str | None:
        """Add a name and return it cleaned. Return None for folders and for names that lead out of the archive."""
        self._budget.count_member(written)
        if not is_file:
            return None
        name = written
        if is_odd(written):
            parts = [part for part in written.split("/") if part not in {"", "."}]
            if written.startswith("/") or ".." in parts or not parts:
                self._unsafe += 1
                return None
            name = "/".join(parts)
        self._repeated += name in self.places
        self.places[name] = place
        return name

    def add_all(self, names: list[str], places: list[int]) -> None:
        """Add `names` as `add` does, but much faster. Names that end with `/` are folders."""
        lines = "\n".join(("", *names, ""))
        new = dict(zip(names, places, strict=True))
        odd = _ODD_OR_FOLDER.search(lines)
        has_folders = odd is not None and odd[0] == "/\n"
        if has_folders:
            odd = _ODD_PART.search(lines)
        if (
            odd
            or (min(names, default="0") < "0" and _ODD_START.search(lines))
            or "\0" in lines
            or len(new) < len(names)
            or not new.keys().isdisjoint(self.places.keys())
        ):
            for name, place in zip(names, places, strict=True):
                cut = name.partition("\0")[0]  # Python's zipfile, and so an installer, ends a name at a NUL
                self.add(cut, place, is_file=not cut.endswith("/"))
            return
        self._budget.count_members(names)
        if has_folders:
            new = {name: place for name, place in new.items() if not name.endswith("/")}
        if self.places:
            self.places |= new
        else:
            self.places = new

    def finish(self) -> None:
        """Write the names and the notes about them into the extract."""
        self._extract.members = folders_of(self.places)
        if self._unsafe:
            self._extract.notes.append(f"{self._unsafe} member names that lead out of the archive are ignored")
        if self._repeated:
            self._extract.notes.append(f"{self._repeated} member names occur again; the last one counts")
        note_names(self._extract)


def note_names(extract: Extract) -> None:
    """Add a note if the names of some files differ only by case."""
    if colliding := _colliding(extract.members):
        extract.notes.append(f"{colliding} member names differ from another one by case alone")


def _colliding(members: dict[str, Folder]) -> int:
    """Return the number of files whose path differs from another path only by case."""
    texts = [inside.sources + inside.others for inside in members.values()]
    fold = case_folding(*members, *texts)
    if len(set(map(fold, members))) < len(members):
        paths = paths_of(members.items())
        return len(paths) - len(set(map(fold, paths)))
    folded = zip(members.values(), texts, map(fold, texts), strict=True)
    differing = [inside.names for inside, text, each in folded if text != each]
    return sum([len(names) - len(set(map(fold, names))) for names in differing])


def keep(extract: Extract, name: str, content: bytes, budget: Budget) -> None:
    """Add a wanted file to `extract`. Only the headers of core metadata are stored. Raise LimitExceededError."""
    kept = trimmed(name, content)
    budget.count_kept(len(kept))
    extract.files[name] = kept


def trimmed(name: str, content: bytes) -> bytes:
    """Return the stored part of a wanted file: the headers of core metadata, or the whole content of other files.

    The description in core metadata is not stored because no reader uses it.
    """
    return headers_of(content) if name.rpartition("/")[2] in {"METADATA", "PKG-INFO"} else content


BLOCK = 512


class BadTarError(Exception):
    """The content is not a tar, or it is corrupt or truncated. The message names the position."""


def padded(size: int) -> int:
    """Return `size` rounded up to whole blocks."""
    return size + -size % BLOCK


class TarStream:
    """Joins pieces of any size into one stream."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._piece = b""
        self._before = 0
        self._at = 0

    @property
    def position(self) -> int:
        return self._before + self._at

    def read(self, size: int) -> bytes:
        """Return `size` bytes, or fewer at the end of the stream."""
        start = self._at
        content = self._piece[start : start + size]
        self._at = start + len(content)
        if len(content) == size:
            return content
        collected = bytearray(content)
        while len(collected) < size and self._next():
            self._at = min(size - len(collected), len(self._piece))
            collected += self._piece[: self._at]
        return bytes(collected)

    def read_padded(self, size: int) -> bytes:
        """Return `size` bytes with their padding to whole blocks. Raise BadTarError if the stream ends before."""
        whole = padded(size)
        content = self.read(whole)
        if len(content) < whole:
            raise self.ended()
        return content

    def read_whole(self, size: int) -> bytes:
        """Read `size` bytes and their padding, and return the bytes. Raise BadTarError if the stream ends before."""
        return self.read_padded(size)[:size]

    def skip(self, size: int) -> None:
        """Skip `size` bytes. Raise BadTarError if the stream has fewer."""
        self._at += size
        while self._at > len(self._piece):
            beyond = self._at - len(self._piece)
            self._at = len(self._piece)
            if not self._next():
                raise self.ended()
            self._at = beyond

    def skip_rest(self) -> None:
        while self._next():
            pass

    def ended(self) -> BadTarError:
        return BadTarError(f"the tar ends at {self.position}, in the middle of a member")

    def _next(self) -> bool:
        self._before += len(self._piece)
        self._at = 0
        self._piece = next(self._pieces, b"")
        return bool(self._piece)
