"""Hold the file names of a distribution by folder.

Python sources are separate from other files because most rules need nothing else.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Self

import msgspec


class Folder(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The files directly in one folder.

    `sources` are the names of its `.py` files without the suffix, and `others` the names of all other files. Both are
    strings in which a `/` follows each name, which is compact and can be split in one call when the names are needed.
    """

    sources: str = ""
    others: str = ""

    @classmethod
    def of(cls, names: str) -> Self:
        """Return the folder with files of these `names`, each followed by a `/`."""
        stems = names.replace(".py/", "/")
        if len(stems) == len(names):
            return cls("", names)
        if len(names) - len(stems) == 3 * names.count("/"):
            return cls(stems)
        each = names.split("/")[:-1]
        return cls(
            "/".join((*[name[:-3] for name in each if name.endswith(".py")], "")),
            "/".join((*[name for name in each if not name.endswith(".py")], "")),
        )

    @property
    def stems(self) -> list[str]:
        """The names of the `.py` files without the suffix."""
        return self.sources.split("/")[:-1]

    @property
    def other_names(self) -> list[str]:
        return self.others.split("/")[:-1]

    @property
    def is_package(self) -> bool:
        """Check whether the folder has an `__init__.py`."""
        return "/__init__/" in f"/{self.sources}"

    @property
    def others_are_data(self) -> bool:
        """Check quickly that no other file is a module or a stub. False means that one of them may be."""
        return ".py" not in self.others and ".so" not in self.others

    @property
    def names(self) -> list[str]:
        """The names of all files."""
        return f"{self.sources.replace('/', '.py/')}{self.others}".split("/")[:-1]

    def __len__(self) -> int:
        return self.sources.count("/") + self.others.count("/")

    def __contains__(self, name: str) -> bool:
        if name.endswith(".py"):
            return f"/{name[:-3]}/" in f"/{self.sources}"
        return f"/{name}/" in f"/{self.others}"


Files = list[tuple[str, Folder]]
"""Folders with the files directly in them. `""` is the top. Folders and files may occur more than once."""


def folders_of(paths: Iterable[str]) -> dict[str, Folder]:
    """Return the files at `paths` by folder, in the order of the first file of each. Paths are relative and use `/`."""
    runs: list[tuple[str, list[str]]] = []
    last = None
    names: list[str] = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if folder != last:
            last = folder
            names = []
            runs.append((folder, names))
        names.append(name)
    folders = dict(runs)
    if len(folders) < len(runs):  # the files of a folder are not next to each other
        folders = {folder: [] for folder in folders}
        for folder, names in runs:
            folders[folder] += names
    return {folder: Folder.of("/".join((*names, ""))) for folder, names in folders.items()}


def by_folder(paths: Iterable[str]) -> Files:
    """Return the result of `folders_of` as a list."""
    return list(folders_of(paths).items())


def paths_of(files: Iterable[tuple[str, Folder]]) -> list[str]:
    """Return the paths of all `files`."""
    return [f"{folder}/{name}" if folder else name for folder, inside in files for name in inside.names]


def merged(files: Files) -> Files:
    """Return `files` without duplicate folders and files."""
    if len(dict(files)) == len(files):
        return files
    folders: dict[str, list[Folder]] = {}
    for folder, inside in files:
        folders.setdefault(folder, []).append(inside)
    return [(folder, each[0] if len(each) == 1 else _union(each)) for folder, each in folders.items()]


def _union(folders: list[Folder]) -> Folder:
    stems = dict.fromkeys(chain.from_iterable(folder.stems for folder in folders))
    others = dict.fromkeys(chain.from_iterable(folder.other_names for folder in folders))
    return Folder("".join([f"{stem}/" for stem in stems]), "".join([f"{name}/" for name in others]))
