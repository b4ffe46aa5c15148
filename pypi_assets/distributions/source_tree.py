"""Present the files of an sdist to the rules of build backends, and describe the files that a build would install."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import starmap
from typing import Any

from pypi_assets.characters import lower
from pypi_assets.distributions.backends import backend_names
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Files, Folder, by_folder, paths_of
from pypi_assets.distributions.metadata import decode_text, parse_top_level
from pypi_assets.distributions.path_patterns import Effort
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.setup_cfg import parse_setup_cfg
from pypi_assets.distributions.setup_script import SetupArguments

MAX_PATH_LENGTH = 4096
"""Longer paths and dotted names are never looked up, since readers reject members with such names."""
MAX_TARGET_LENGTH = 250
"""The maximum length of the folder that files are moved to, so that many files take no unlimited memory.

The longest real folders have a hundred characters.
"""
_FEW = 500
"""The length of names in a folder up to which a search is faster than building a set."""
_AFTER_SLASH = chr(ord("/") + 1)
_COMPILED = (".so", ".pyd")
_UNCOMPILED = (".pyi", ".pyx")
_MODULES = (*_UNCOMPILED, *_COMPILED)
"""Suffixes of files that can be modules or stubs, in addition to `.py`."""
COMPILED_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".pyx", ".rs", ".f", ".f90", ".i", ".m", ".go", ".cu")


@dataclass(frozen=True, slots=True)
class Installed:
    """The files that a build would install.

    `files` are relative to site-packages, `extensions` are dotted names of compiled modules, and `by` names the rule
    that found them. With `compiles_all`, a build with Cython compiles each .pyx in the files. Otherwise it compiles
    only those in `extensions`.
    """

    by: str
    files: Files
    extensions: tuple[str, ...] = ()
    grade: ModulesGrade = ModulesGrade.EXACT
    compiles_all: bool = True


def least_sure(*grades: ModulesGrade) -> ModulesGrade:
    """Return the least certain of the grades."""
    return max(grades, key=[*ModulesGrade].index)


@dataclass(frozen=True)
class SourceTree:
    """The files of an sdist as rules see them. Paths are relative to the sdist's top folder, which is `""`.

    Only the folders in `members`, which has all files, are named as in the archive: they equal `top` without its slash,
    or begin with `top`. `files` are the small files whose content was stored. `declared` are the import names that the
    metadata declare (PEP 794), `egg_info` is the folder of the .egg-info, and `read_setup_script` reads setup.py when a
    rule needs it. `effort` counts the work of all rules together. Its methods raise LimitExceededError if it is
    excessive.
    """

    members: Mapping[str, Folder]
    top: str
    files: Mapping[str, bytes]
    project: str | None
    declared: tuple[str, ...]
    egg_info: str | None
    pyproject: Mapping[str, Any]
    read_setup_script: Callable[[], SetupArguments | None]
    effort: Effort = field(default_factory=Effort)

    @cached_property
    def sources(self) -> dict[str, Folder]:
        """The files that can be modules or stubs, by folder."""
        cut = len(self.top)
        sources = {}
        for folder, inside in self.members.items():
            if not inside.others:
                sources[folder[cut:]] = inside
            elif not inside.others_are_data:
                if modules := _only(_MODULES, inside):
                    sources[folder[cut:]] = modules
            elif inside.sources:
                sources[folder[cut:]] = Folder(inside.sources)
        return sources

    @cached_property
    def _all_bytecode(self) -> Files:
        cut = len(self.top)
        folders = [(folder[cut:], inside) for folder, inside in self.members.items() if ".pyc/" in inside.others]
        return sorted((folder, _only((".pyc",), inside)) for folder, inside in folders)

    @cached_property
    def _sets(self) -> dict[str, frozenset[str]]:
        """The names in large folders, cached when a folder is first searched."""
        return {}

    @cached_property
    def _ordered(self) -> Files:
        return sorted(self.sources.items())

    @cached_property
    def packages(self) -> dict[str, Folder]:
        """The folders with an `__init__.py`, without the top."""
        return {folder: inside for folder, inside in self.sources.items() if folder and inside.is_package}

    @cached_property
    def folders(self) -> set[str]:
        """The folders that contain a module or a stub at any depth."""
        folders = {""}
        for source in self.sources:
            folder = source
            while folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        return folders

    @cached_property
    def setup_cfg(self) -> Mapping[str, Mapping[str, str]]:
        """The sections of setup.cfg."""
        content = self.files.get("setup.cfg", b"")
        if b"[options" not in content and b"[files" not in content:
            return {}
        return parse_setup_cfg(decode_text(content, "setup.cfg")[0])

    @cached_property
    def top_level(self) -> tuple[str, ...] | None:
        """The names in top_level.txt, or None if there is no such file."""
        content = self.files.get(f"{self.egg_info}/top_level.txt")
        return None if content is None else parse_top_level(content)

    @cached_property
    def uses_cython(self) -> bool:
        """Check whether a build has Cython, so that .pyx files become modules.

        A build has only its required packages, and packages that the project's own backend may require.
        """
        required = strings(self.table("build-system").get("requires"))
        script = self.files.get("setup.py", b"")
        is_offered = not required or b"setup_requires" in script
        return (
            self.has_own_backend
            or any("cython" in lower(each) for each in required)
            or (is_offered and (b"ythonize" in script or b"ython.Distutils" in script))
        )

    @property
    def has_own_backend(self) -> bool:
        """Check whether the build backend lies in the sdist itself, so that it may do anything."""
        return "backend-path" in self.table("build-system")

    @property
    def backend(self) -> str:
        """The build backend in pyproject.toml without its object, or "" if there is none."""
        backend = self.table("build-system").get("build-backend")
        return backend.partition(":")[0] if isinstance(backend, str) else ""

    def is_built_by(self, backends: frozenset[str]) -> bool:
        """Check whether pyproject.toml names one of these modules as the backend, and it is not part of the sdist."""
        return self.backend in backends and not self.has_own_backend

    @property
    def is_built_by_setuptools(self) -> bool:
        """Check whether setuptools is the backend. It is the default if none is named."""
        return not self.backend or self.is_built_by(backend_names.SETUPTOOLS)

    @cached_property
    def has_compiled_modules(self) -> bool:
        return _has_any(_COMPILED, self.sources)

    @cached_property
    def has_compiled_sources(self) -> bool:
        return _has_any(COMPILED_SOURCES, self.members)

    def table(self, *keys: str) -> Mapping[str, Any]:
        """Return a table of pyproject.toml, or an empty one."""
        return table(self.pyproject, *keys)

    def has_folder(self, folder: str) -> bool:
        """Check whether `folder` contains a file of any kind at any depth."""
        start = f"{self.top}{folder}/"
        return any(f"{each}/".startswith(start) for each in self.members)

    def has_member(self, path: str) -> bool:
        """Check whether a file of any kind has this path."""
        folder, _, name = path.rpartition("/")
        return name in self.members.get(joined(self.top.removesuffix("/"), folder), Folder())

    def has_unread(self, *paths: str) -> bool:
        """Check whether one of these files exists but its content was not stored, for example by an earlier version."""
        return any(path not in self.files and self.has_member(path) for path in paths)

    def has_any(self, path: str) -> bool:
        """Check whether `path` is a file, or a folder that contains a file of any kind."""
        return self.has_member(path) or self.has_folder(path)

    def has_file(self, path: str) -> bool:
        """Check whether a module, a stub or a compiled module has this path."""
        folder, _, name = path.rpartition("/")
        inside = self.sources.get(folder, Folder())
        if len(inside.sources) + len(inside.others) < _FEW:
            return name in inside
        if folder not in self._sets:
            self._sets[folder] = frozenset(inside.names)
        return name in self._sets[folder]

    def right_in(self, folders: Iterable[str]) -> Files:
        """Return the modules directly in each of `folders`, without compiled ones."""
        files = [(folder, self.sources[folder]) for folder in folders if folder in self.sources]
        self.effort.spend(len(files) + sum([len(inside) for _, inside in files]))
        return self.uncompiled(files)

    @cached_property
    def modules_at_top(self) -> list[str]:
        """The names of the `.py` files at the top, without the suffix."""
        return [stem for _, inside in self.right_in([""]) for stem in inside.stems]

    def uncompiled(self, files: Files) -> Files:
        """Return `files` without compiled modules."""
        if not self.has_compiled_modules:
            return files
        left = [(folder, _only(_UNCOMPILED, inside)) for folder, inside in files]
        return [(folder, inside) for folder, inside in left if inside]

    @cached_property
    def tops(self) -> list[str]:
        """The top-level folders that contain a module or a stub at any depth."""
        return sorted({folder.partition("/")[0] for folder in self.sources if folder})

    def below(self, folder: str) -> Files:
        """Return all modules and stubs in `folder` and its subfolders."""
        if folder:
            first = bisect_left(self._ordered, (f"{folder}/",))
            end = bisect_left(self._ordered, (f"{folder}{_AFTER_SLASH}",), first)
            files = self._ordered[first:end]
            if folder in self.sources:
                files.insert(0, (folder, self.sources[folder]))
        else:
            files = list(self._ordered)
        self.effort.spend(4 + sum(starmap(_steps, files)))
        return files

    def bytecode(self, folder: str) -> Files:
        """Return the `.pyc` files in `folder` and its subfolders. Most build backends skip them."""
        files = [each for each in self._all_bytecode if f"{each[0]}/".startswith(f"{folder}/" if folder else "")]
        self.effort.spend(len(self._all_bytecode) + sum(starmap(_steps, files)))
        return files

    def _has_modules(self, folder: str) -> bool:
        """Check whether `folder` is the top or contains a module or a stub at any depth."""
        if not folder or folder in self.sources:
            return True
        start = f"{folder}/"
        at = bisect_left(self._ordered, (start,))
        return at < len(self._ordered) and self._ordered[at][0].startswith(start)

    def at(self, path: str) -> Files:
        """Return the module at `path`, or all files below it if it is a folder."""
        if not (path.endswith((".py", *_MODULES)) and self.has_file(path)):
            return self.below(path)
        self.effort.spend(4 + len(path) // 32)
        return by_folder([path])

    def named(self, folder: str, name: str) -> str | None:
        """Return the path of the package or single module `name` in `folder`, or None.

        An exact match is preferred. Otherwise case is ignored, since a build on a case-insensitive file system works
        that way.
        """
        return self.first_named([folder], name)

    def first_named(self, folders: Iterable[str], name: str) -> str | None:
        """Return the path of the package or single module `name` in the first of `folders` that has it, or None.

        An exact match in any of them is preferred to a match that ignores case.
        """
        paths = [joined(folder, f"{name}{suffix}") for folder in folders for suffix in ("", ".py")]
        if exact := next((path for path in paths if self._has_modules(path) or self.has_file(path)), None):
            return exact
        wanted = {lower(path) for path in paths}
        parents = {path.rpartition("/")[0] for path in paths}
        nearby = [*self.folders, *paths_of((each, self.sources[each]) for each in parents if each in self.sources)]
        self.effort.spend(len(nearby))
        return min((path for path in nearby if lower(path) in wanted), default=None)


def _steps(folder: str, inside: Folder) -> int:
    """Return the cost of these files in a list. It grows with the length of paths, since they take memory."""
    sources, others = inside.sources, inside.others
    count = sources.count("/") + others.count("/")
    return 4 + count * (4 + len(folder) // 32) + (len(sources) + len(others)) // 32


def _only(suffixes: tuple[str, ...], inside: Folder) -> Folder:
    """Return `inside` with all sources, and only those other files that have one of `suffixes`."""
    return Folder(inside.sources, "".join([f"{name}/" for name in inside.other_names if name.endswith(suffixes)]))


def _has_any(suffixes: tuple[str, ...], folders: Mapping[str, Folder]) -> bool:
    others = "".join([inside.others for inside in folders.values()])
    return any(f"{suffix}/" in others for suffix in suffixes)


def clean_path(path: str) -> str:
    """Return `src/demo` for `./src//demo/`. The path is cut at a length that no file has."""
    path = path[: 2 * MAX_PATH_LENGTH]
    if "\\" in path:
        path = path.replace("\\", "/")
    return "/".join(part for part in path.strip().split("/") if part not in {"", "."})


def moved(files: Files, folder: str, target: str = "") -> Files:
    """Return `files`, which lie in or below `folder`, at their paths after its content is moved to `target`.

    Raise LimitExceededError if `target` is longer than MAX_TARGET_LENGTH.
    """
    if folder == target or not files:
        return files
    if len(target) > MAX_TARGET_LENGTH:
        raise LimitExceededError(f"a folder to install to is longer than {MAX_TARGET_LENGTH} characters")
    cut = len(folder) + 1 if folder else 0
    return [(joined(target, each[cut:]), inside) for each, inside in files]


def joined(folder: str, path: str) -> str:
    """Return the path of `path` below `folder`. Either may be empty."""
    return f"{folder}/{path}" if folder and path else folder or path


_SEPARATORS = re.compile(r"[-_.]+")


def module_name(project: str) -> str:
    """Return the project's normalized name in the form of a module name."""
    return lower(_SEPARATORS.sub("_", project))
