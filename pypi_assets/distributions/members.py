"""The files of a distribution, or of a part of it, by the folder that they lie in.

Python sources are kept apart from all other files, since most rules look at nothing else.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Self

import msgspec


class Folder(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The files right in one folder: `sources` are the names of its `.py` files without that suffix, `others` the names
    of all its other files.

    Both are texts in which each name is followed by a `/`, which is in none: one call splits them, and only where they
    are looked at.
    """

    sources: str = ""
    others: str = ""

    @classmethod
    def of(cls, names: str) -> Self:
        """The folder with files of these `names`, each of them followed by a `/`."""
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
        """The names of the `.py` files, without that suffix."""
        return self.sources.split("/")[:-1]

    @property
    def other_names(self) -> list[str]:
        return self.others.split("/")[:-1]

    @property
    def is_package(self) -> bool:
        """Whether there is an `__init__.py`."""
        return "/__init__/" in f"/{self.sources}"

    @property
    def others_are_data(self) -> bool:
        """Whether a short look shows that none of the others is a module or a stub."""
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
"""Folders with what is right in them; `""` is the top. A folder may be there twice, and so may a file."""


def folders_of(paths: Iterable[str]) -> dict[str, Folder]:
    """The files at `paths`, which are relative, with `/`, by their folders in the order of the first file of each."""
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
    if len(folders) < len(runs):  # files of others came between those of a folder
        folders = {folder: [] for folder in folders}
        for folder, names in runs:
            folders[folder] += names
    return {folder: Folder.of("/".join((*names, ""))) for folder, names in folders.items()}


def by_folder(paths: Iterable[str]) -> Files:
    """What `folders_of` gives, as what rules put together."""
    return list(folders_of(paths).items())


def paths_of(files: Iterable[tuple[str, Folder]]) -> list[str]:
    """The paths of all `files`."""
    return [f"{folder}/{name}" if folder else name for folder, inside in files for name in inside.names]


def merged(files: Files) -> Files:
    """`files` with each folder once, and each file once."""
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
