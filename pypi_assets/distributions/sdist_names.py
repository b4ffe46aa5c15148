"""Determine the paths to which pip unpacks the members of an sdist, for tars and zips.

Nearly all archives need only their names as they are. All others go through `unpacked_tree`.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from pypi_assets.distributions.archives import note_names, some_may_be_odd
from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.limits import MIB, Budget, LimitExceededError
from pypi_assets.distributions.members import folders_of
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.unpacked_tree import Doubts, Member, MemberKind, UnpackedTree, unpacked_zip

_MAX_PART_LENGTH = 255
_LONG_PART = re.compile("/[^/]{256}")
_LONG_PART_OF_ANY_SCRIPT = re.compile("/[^/]{64}")
_MAX_LENGTH = 900
"""The greatest length of a name that is a valid path on Linux in any encoding."""
_MAX_FOLDER_CHARS = 8 * MIB
"""The maximum total length of all folder paths, a hundred times more than in ordinary sdists."""
_NO_TOP = "not all members lie in one folder, so that pip leaves none out and finds the project in none"


def are_usual(files: Collection[str], folders: Collection[str]) -> bool:
    """Check whether pip unpacks files and folders with these names unchanged, in any order. `files` has no duplicates.

    >>> are_usual(["demo-1.0/demo.py"], ["demo-1.0"]), are_usual(["demo-1.0/../demo.py"], [])
    (True, False)
    """
    names = [*files, *folders]
    text = "/".join(("", *names))
    if "\\" in text or "\0" in text or some_may_be_odd(names):
        return False
    longest = max(map(len, names), default=0)
    long_part = _LONG_PART if text.isascii() else _LONG_PART_OF_ANY_SCRIPT
    if longest > _MAX_LENGTH or (longest > _MAX_PART_LENGTH // 4 and long_part.search(text)):
        return False
    all_folders = _all_folders(files, folders)
    return all_folders is not None and all_folders.isdisjoint(files)


def _all_folders(files: Iterable[str], folders: Iterable[str]) -> set[str] | None:
    """Return all folders below the top, listed in the archive or not, or None if their paths are excessively long."""
    all_folders = set(folders)
    all_folders.update([name.rpartition("/")[0] for name in files])
    chars = 0
    for folder in list(all_folders):
        above = folder.rpartition("/")[0]
        while above and above not in all_folders:
            all_folders.add(above)
            chars += len(above)
            if chars > _MAX_FOLDER_CHARS:
                return None
            above = above.rpartition("/")[0]
    return all_folders - {""}


def put_names(extract: Extract, files: Mapping[str, int]) -> None:
    """Store the paths of `files` in `extract`, with notes about them."""
    extract.members = folders_of(files)
    note_names(extract)


def note_tree(extract: Extract, tree: UnpackedTree, doubts: Doubts) -> None:
    """Add notes on doubts about `tree`, which was needed because its member names are odd."""
    extract.notes += doubts.notes
    if tree.repeated:
        extract.notes.append(f"{tree.repeated} member names occur again; the last one counts")


def note_top(extract: Extract, top: str | None) -> None:
    """Add a note if all files lie in one folder that is not the `top` folder that pip removes."""
    tops = {folder.partition("/")[0] for folder in extract.members}
    if len(tops) == 1 and tops != {""} and tops != {top}:
        extract.notes.append(f"{AMBIGUOUS} {_NO_TOP}")


def common_top(files: Iterable[str], folders: Iterable[str]) -> str | None:
    """Return the folder that contains all members with usual names, or None. This is a faster `leading_folder`."""
    tops = {name.partition("/")[0] for name in (*{file.rpartition("/")[0] for file in files}, *folders)}
    return next(iter(tops)) or None if len(tops) == 1 else None


def readable(name: str) -> str:
    """Return `name` with invalid bytes replaced. Tars keep them as half surrogate pairs."""
    return name if name.isascii() else name.encode(errors="surrogateescape").decode(errors="replace")


class SdistNames:
    """Collects the names of a zip's members and determines the paths to which pip unpacks them.

    `places` maps each path to the place of its content, as the reader of the zip counts places.
    """

    def __init__(self, extract: Extract, budget: Budget) -> None:
        self._extract = extract
        self._budget = budget
        self._names: list[str] = []
        self._places: list[int] = []
        self._found: dict[str, int] | None = None

    def add_all(self, names: list[str], places: list[int]) -> None:
        """Add `names`. Names that end with `/` are folders. Raise LimitExceededError."""
        self._budget.count_members(names)
        self._names += names
        self._places += places

    @property
    def places(self) -> dict[str, int]:
        """Return the places of all members after the last name was added. Raise LimitExceededError."""
        if self._found is None:
            self._found = self._find()
        return self._found

    def _find(self) -> dict[str, int]:
        # zipfile ends a name at a NUL
        names = [name.partition("\0")[0] for name in self._names] if "\0" in "".join(self._names) else self._names
        files = {name: place for name, place in zip(names, self._places, strict=True) if not name.endswith("/")}
        folders = [name[:-1] for name in names if name.endswith("/")]
        if len(files) + len(folders) == len(names) and are_usual(files, folders):
            put_names(self._extract, files)
            note_top(self._extract, common_top(files, folders))
            return files
        doubts = Doubts()
        last = dict(zip(names, self._places, strict=True))  # zipfile opens a member by its name
        tree = unpacked_zip([Member(name, MemberKind.FILE, last[name]) for name in names], doubts)
        put_names(self._extract, tree.files)
        note_tree(self._extract, tree, doubts)
        note_top(self._extract, tree.usual_top)
        return dict(tree.files)

    def finish(self) -> None:
        """Store the names in the extract, with notes about them."""
        if self._found is None and self._names:
            try:
                self._found = self._find()
            except LimitExceededError as error:
                self._extract.fail_with(error)
