"""The files of an sdist as build backends look at them, and what a backend would install of them."""

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.metadata import decode_text, parse_top_level
from pypi_assets.distributions.path_patterns import Effort
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.setup_cfg import parse_setup_cfg
from pypi_assets.distributions.setup_script import SetupArguments

MAX_PATH_LENGTH = 4096
"""No file or package that a longer path or dotted name tells is looked for: readers refuse members with such names."""
MAX_TARGET_LENGTH = 250
"""Of the name of a folder that files are moved to, so that many files in it take no memory without end; the longest
real ones have a hundred characters."""
MODULE_SUFFIXES = (".py", ".pyi", ".pyx", ".so", ".pyd")
_FEW = 50
_AFTER_SLASH = chr(ord("/") + 1)
COMPILED_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".pyx", ".rs", ".f", ".f90", ".i", ".m", ".go", ".cu")


@dataclass(frozen=True, slots=True)
class Installed:
    """What a build would install. `paths` are relative to site-packages, `extensions` are the dotted names of modules
    that are compiled, `by` names the rule that found them."""

    by: str
    paths: list[str]
    extensions: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceTree:
    """What the rules look at; paths are relative to the sdist's top folder, `""` is the top.

    Only `members` are named as in the archive: all of them start with `top`, the top folder and a slash, or nothing.
    `files` are the small files that were kept. `declared` are the import names that the metadata declare (PEP 794),
    `egg_info` is the folder of the .egg-info, `read_setup_script` reads setup.py where a rule needs it. What rules look
    at is counted in `effort`, all of them together: its methods raise LimitExceededError where that is far too much.
    """

    members: list[str]
    top: str
    files: Mapping[str, bytes]
    project: str | None
    declared: tuple[str, ...]
    egg_info: str | None
    pyproject: Mapping[str, Any]
    read_setup_script: Callable[[], SetupArguments | None]

    @cached_property
    def sources(self) -> dict[str, list[str]]:
        """The files that can be modules or stubs, as whole paths, by the folder that they lie in."""
        folders: dict[str, list[str]] = {}
        cut = len(self.top)
        for path in [path[cut:] for path in self.members if path.endswith(MODULE_SUFFIXES)]:
            folder = path.rpartition("/")[0]
            try:
                folders[folder].append(path)
            except KeyError:
                folders[folder] = [path]
        return folders

    @cached_property
    def _sets(self) -> dict[str, frozenset[str]]:
        """The files in folders that hold many, for those that were asked for."""
        return {}

    @cached_property
    def _ordered(self) -> list[str]:
        return sorted(self.sources)

    @cached_property
    def packages(self) -> frozenset[str]:
        """The folders with an `__init__.py`."""
        return frozenset(
            [folder for folder, paths in self.sources.items() if folder and f"{folder}/__init__.py" in paths]
        )

    @cached_property
    def folders(self) -> frozenset[str]:
        """The folders that have a module or a stub somewhere below."""
        found = {""}
        for source in self.sources:
            folder = source
            while folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return frozenset(found)

    @cached_property
    def setup_cfg(self) -> Mapping[str, Mapping[str, str]]:
        """The sections of setup.cfg."""
        content = self.files.get("setup.cfg", b"")
        if b"[options" not in content and b"[files" not in content:
            return {}
        return parse_setup_cfg(decode_text(content, "setup.cfg")[0])

    @cached_property
    def top_level(self) -> tuple[str, ...] | None:
        """The names in top_level.txt, None where there is no such file."""
        content = self.files.get(f"{self.egg_info}/top_level.txt")
        return None if content is None else parse_top_level(content)

    @cached_property
    def uses_cython(self) -> bool:
        """Whether a build has Cython, so that .pyx files become modules: what is not asked for is not there."""
        required = strings(self.table("build-system").get("requires"))
        script = self.files.get("setup.py", b"")
        is_offered = not required or b"setup_requires" in script
        return any("cython" in each.lower() for each in required) or (is_offered and b"ythonize" in script)

    @cached_property
    def has_compiled_modules(self) -> bool:
        return any(path.endswith((".so", ".pyd")) for paths in self.sources.values() for path in paths)

    @cached_property
    def has_compiled_sources(self) -> bool:
        return any(path.endswith(COMPILED_SOURCES) for path in self.members)

    def table(self, *keys: str) -> Mapping[str, Any]:
        """A table of pyproject.toml, empty where there is none."""
        return table(self.pyproject, *keys)

    def has_folder(self, folder: str) -> bool:
        """Whether anything lies below `folder`, a module or not."""
        start = f"{self.top}{folder}/"
        return any(member.startswith(start) for member in self.members)

    def has_file(self, path: str) -> bool:
        """Whether a module, a stub or a compiled module lies at `path`."""
        folder = path.rpartition("/")[0]
        paths = self.sources.get(folder, ())
        if len(paths) < _FEW:
            return path in paths
        if folder not in self._sets:
            self._sets[folder] = frozenset(paths)
        return path in self._sets[folder]

    def files_in(self, folder: str) -> list[str]:
        """The paths of the modules right in `folder`, without what is already compiled."""
        paths = self.sources.get(folder, [])
        self.effort.spend(1 + len(paths))
        return [path for path in paths if not path.endswith((".so", ".pyd"))] if self.has_compiled_modules else paths

    @cached_property
    def effort(self) -> Effort:
        """What finding the modules of this tree has taken so far; matching patterns counts as well."""
        return Effort()

    @cached_property
    def _effort_of_path(self) -> int:
        """Of one more path in a list: more where paths are long, as it is memory that they take."""
        return 4 + max(map(len, self.members), default=0) // 32

    @cached_property
    def tops(self) -> list[str]:
        """The folders at the top that have a module or a stub somewhere below."""
        return sorted({folder.partition("/")[0] for folder in self.sources if folder})

    def below(self, folder: str) -> list[str]:
        """The paths of all modules and stubs in `folder` and its folders."""
        found = self._below(folder)
        self.effort.spend(4 + len(found) * self._effort_of_path)
        return found

    def _below(self, folder: str) -> list[str]:
        if not folder:
            return [path for paths in self.sources.values() for path in paths]
        first = bisect_left(self._ordered, f"{folder}/")
        end = bisect_left(self._ordered, f"{folder}{_AFTER_SLASH}", first)
        inside = [path for each in self._ordered[first:end] for path in self.sources[each]]
        return [*self.sources.get(folder, ()), *inside]

    def at(self, path: str) -> list[str]:
        """The module at `path`, or all that is below, where it is a folder."""
        if not (path.endswith(MODULE_SUFFIXES) and self.has_file(path)):
            return self.below(path)
        self.effort.spend(self._effort_of_path)
        return [path]

    def named(self, folder: str, name: str) -> str | None:
        """The path of the package or of the single module `name` in `folder`; its case is ignored where it has to be,
        as file systems that ignore it let it be built."""
        start = f"{folder}/" if folder else ""
        for path in (f"{start}{name}", f"{start}{name}.py"):
            if path in self.folders or self.has_file(path):
                return path
        wanted = {f"{start}{name}".lower(), f"{start}{name}.py".lower()}
        nearby = [*self.folders, *self.sources.get(folder, ())]
        self.effort.spend(len(nearby))
        return min((path for path in nearby if path.lower() in wanted), default=None)


def clean_path(path: str) -> str:
    """`./src//demo/` as `src/demo`. What is so long that no file lies there is cut."""
    path = path[: 2 * MAX_PATH_LENGTH]
    if "\\" in path:
        path = path.replace("\\", "/")
    return "/".join(part for part in path.strip().split("/") if part not in {"", "."})


def moved(paths: list[str], folder: str, target: str = "") -> list[str]:
    """`paths`, which lie below `folder`, as they are where that folder's content comes to lie in `target`. Raises
    LimitExceededError where that is longer than MAX_TARGET_LENGTH."""
    if folder == target or not paths:
        return list(paths)
    if len(target) > MAX_TARGET_LENGTH:
        raise LimitExceededError(f"a folder to install to is longer than {MAX_TARGET_LENGTH} characters")
    cut = len(folder) + 1 if folder else 0
    start = f"{target}/" if target else ""
    return [start + path[cut:] for path in paths]


_SEPARATORS = re.compile(r"[-_.]+")


def module_name(project: str) -> str:
    """The project's normalized name as a module has it."""
    return _SEPARATORS.sub("_", project).lower()
