"""The files of an sdist as build backends look at them, and what a backend would install of them."""

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
"""No file or package with a longer path or dotted name is looked for: readers refuse members with such names."""
MAX_TARGET_LENGTH = 250
"""Of the name of a folder that files are moved to, so that many files in it take no memory without end; the longest
real ones have a hundred characters."""
_FEW = 500
"""Characters of the names in a folder that are looked through faster than they are made a set of."""
_AFTER_SLASH = chr(ord("/") + 1)
_COMPILED = (".so", ".pyd")
_UNCOMPILED = (".pyi", ".pyx")
_MODULES = (*_UNCOMPILED, *_COMPILED)
"""Suffixes of what can be a module or a stub, next to `.py`."""
COMPILED_SOURCES = (".c", ".cc", ".cpp", ".cxx", ".pyx", ".rs", ".f", ".f90", ".i", ".m", ".go", ".cu")


@dataclass(frozen=True, slots=True)
class Installed:
    """What a build would install. `files` are relative to site-packages, `extensions` are the dotted names of modules
    that are compiled, `by` names the rule that found them. Where `compiles_all`, a build with Cython makes a module of
    each .pyx among the files, else of none that `extensions` lack."""

    by: str
    files: Files
    extensions: tuple[str, ...] = ()
    grade: ModulesGrade = ModulesGrade.EXACT
    compiles_all: bool = True


def least_sure(*grades: ModulesGrade) -> ModulesGrade:
    """The grade of what was found with several doubts."""
    return max(grades, key=[*ModulesGrade].index)


@dataclass(frozen=True)
class SourceTree:
    """What the rules look at; paths are relative to the sdist's top folder, `""` is the top.

    Only the folders of `members`, all its files, are named as in the archive: they are `top` without its slash, or
    begin with `top`. `files` are the small files that were kept. `declared` are the import names
    that the metadata declare (PEP 794), `egg_info` is the folder of the .egg-info, `read_setup_script` reads setup.py
    where a rule needs it. What rules look at is counted in `effort`, all of them together: its methods raise
    LimitExceededError where that is far too much.
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
        """The files that can be modules or stubs, by the folder that they lie in."""
        cut = len(self.top)
        found = {}
        for folder, inside in self.members.items():
            if not inside.others:
                found[folder[cut:]] = inside
            elif not inside.others_are_data:
                if modules := _only(_MODULES, inside):
                    found[folder[cut:]] = modules
            elif inside.sources:
                found[folder[cut:]] = Folder(inside.sources)
        return found

    @cached_property
    def _all_bytecode(self) -> Files:
        cut = len(self.top)
        found = [(folder[cut:], inside) for folder, inside in self.members.items() if ".pyc/" in inside.others]
        return sorted((folder, _only((".pyc",), inside)) for folder, inside in found)

    @cached_property
    def _sets(self) -> dict[str, frozenset[str]]:
        """The names in large folders, for those that were looked into."""
        return {}

    @cached_property
    def _ordered(self) -> Files:
        return sorted(self.sources.items())

    @cached_property
    def packages(self) -> dict[str, Folder]:
        """The folders with an `__init__.py`, but for the top."""
        return {folder: inside for folder, inside in self.sources.items() if folder and inside.is_package}

    @cached_property
    def folders(self) -> set[str]:
        """The folders that have a module or a stub somewhere below."""
        found = {""}
        for source in self.sources:
            folder = source
            while folder not in found:
                found.add(folder)
                folder = folder.rpartition("/")[0]
        return found

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
        """Whether a build has Cython, so that .pyx files become modules: only what is required is there, and what a
        backend of the project's own may require."""
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
        """Whether the build backend lies in the sdist itself, so that it may do anything."""
        return "backend-path" in self.table("build-system")

    @property
    def backend(self) -> str:
        """The build backend that pyproject.toml names, without its object; empty if it names none."""
        backend = self.table("build-system").get("build-backend")
        return backend.partition(":")[0] if isinstance(backend, str) else ""

    def is_built_by(self, backends: frozenset[str]) -> bool:
        """Whether pyproject.toml names one of these modules as the backend, and it does not lie in the sdist."""
        return self.backend in backends and not self.has_own_backend

    @property
    def is_built_by_setuptools(self) -> bool:
        """Whether setuptools is the backend, as it is if none is named."""
        return not self.backend or self.is_built_by(backend_names.SETUPTOOLS)

    @cached_property
    def has_compiled_modules(self) -> bool:
        return _has_any(_COMPILED, self.sources)

    @cached_property
    def has_compiled_sources(self) -> bool:
        return _has_any(COMPILED_SOURCES, self.members)

    def table(self, *keys: str) -> Mapping[str, Any]:
        """A table of pyproject.toml, empty where there is none."""
        return table(self.pyproject, *keys)

    def has_folder(self, folder: str) -> bool:
        """Whether anything lies below `folder`, a module or not."""
        start = f"{self.top}{folder}/"
        return any(f"{each}/".startswith(start) for each in self.members)

    def has_member(self, path: str) -> bool:
        """Whether a file of any kind lies at `path`."""
        folder, _, name = path.rpartition("/")
        return name in self.members.get(joined(self.top.removesuffix("/"), folder), Folder())

    def has_unread(self, *paths: str) -> bool:
        """Whether one of these files is there, and its content was not kept: not by earlier versions, for one."""
        return any(path not in self.files and self.has_member(path) for path in paths)

    def has_any(self, path: str) -> bool:
        """Whether a file, or a folder with a file of any kind below it, lies at `path`."""
        return self.has_member(path) or self.has_folder(path)

    def has_file(self, path: str) -> bool:
        """Whether a module, a stub or a compiled module lies at `path`."""
        folder, _, name = path.rpartition("/")
        inside = self.sources.get(folder, Folder())
        if len(inside.sources) + len(inside.others) < _FEW:
            return name in inside
        if folder not in self._sets:
            self._sets[folder] = frozenset(inside.names)
        return name in self._sets[folder]

    def right_in(self, folders: Iterable[str]) -> Files:
        """The modules right in each of `folders`, without what is already compiled."""
        found = [(folder, self.sources[folder]) for folder in folders if folder in self.sources]
        self.effort.spend(len(found) + sum([len(inside) for _, inside in found]))
        return self.uncompiled(found)

    @cached_property
    def modules_at_top(self) -> list[str]:
        """The names of the `.py` files at the top, without that suffix."""
        return [stem for _, inside in self.right_in([""]) for stem in inside.stems]

    def uncompiled(self, files: Files) -> Files:
        """`files` without what is already compiled."""
        if not self.has_compiled_modules:
            return files
        left = [(folder, _only(_UNCOMPILED, inside)) for folder, inside in files]
        return [(folder, inside) for folder, inside in left if inside]

    @cached_property
    def tops(self) -> list[str]:
        """The folders at the top that have a module or a stub somewhere below."""
        return sorted({folder.partition("/")[0] for folder in self.sources if folder})

    def below(self, folder: str) -> Files:
        """All modules and stubs in `folder` and its folders."""
        if folder:
            first = bisect_left(self._ordered, (f"{folder}/",))
            end = bisect_left(self._ordered, (f"{folder}{_AFTER_SLASH}",), first)
            found = self._ordered[first:end]
            if folder in self.sources:
                found.insert(0, (folder, self.sources[folder]))
        else:
            found = list(self._ordered)
        self.effort.spend(4 + sum(starmap(_steps, found)))
        return found

    def bytecode(self, folder: str) -> Files:
        """The `.pyc` files in `folder` and its folders, which most build backends leave out."""
        found = [each for each in self._all_bytecode if f"{each[0]}/".startswith(f"{folder}/" if folder else "")]
        self.effort.spend(len(self._all_bytecode) + sum(starmap(_steps, found)))
        return found

    def _has_modules(self, folder: str) -> bool:
        """Whether `folder` is the top or has a module or a stub somewhere below."""
        if not folder or folder in self.sources:
            return True
        start = f"{folder}/"
        at = bisect_left(self._ordered, (start,))
        return at < len(self._ordered) and self._ordered[at][0].startswith(start)

    def at(self, path: str) -> Files:
        """The module at `path`, or all that is below, where it is a folder."""
        if not (path.endswith((".py", *_MODULES)) and self.has_file(path)):
            return self.below(path)
        self.effort.spend(4 + len(path) // 32)
        return by_folder([path])

    def named(self, folder: str, name: str) -> str | None:
        """The path of the package or of the single module `name` in `folder`; its case is ignored where it has to be,
        as file systems that ignore it let it be built."""
        return self.first_named([folder], name)

    def first_named(self, folders: Iterable[str], name: str) -> str | None:
        """The path of the package or of the single module `name` in the first of `folders` that has one, with that
        case, else with any."""
        paths = [joined(folder, f"{name}{suffix}") for folder in folders for suffix in ("", ".py")]
        if exact := next((path for path in paths if self._has_modules(path) or self.has_file(path)), None):
            return exact
        wanted = {lower(path) for path in paths}
        parents = {path.rpartition("/")[0] for path in paths}
        nearby = [*self.folders, *paths_of((each, self.sources[each]) for each in parents if each in self.sources)]
        self.effort.spend(len(nearby))
        return min((path for path in nearby if lower(path) in wanted), default=None)


def _steps(folder: str, inside: Folder) -> int:
    """What it takes to have these files in a list: more where paths are long, as it is memory that they take."""
    sources, others = inside.sources, inside.others
    count = sources.count("/") + others.count("/")
    return 4 + count * (4 + len(folder) // 32) + (len(sources) + len(others)) // 32


def _only(suffixes: tuple[str, ...], inside: Folder) -> Folder:
    """`inside` with no others than those with one of `suffixes`."""
    return Folder(inside.sources, "".join([f"{name}/" for name in inside.other_names if name.endswith(suffixes)]))


def _has_any(suffixes: tuple[str, ...], folders: Mapping[str, Folder]) -> bool:
    others = "".join([inside.others for inside in folders.values()])
    return any(f"{suffix}/" in others for suffix in suffixes)


def clean_path(path: str) -> str:
    """`./src//demo/` as `src/demo`. What is so long that no file lies there is cut."""
    path = path[: 2 * MAX_PATH_LENGTH]
    if "\\" in path:
        path = path.replace("\\", "/")
    return "/".join(part for part in path.strip().split("/") if part not in {"", "."})


def moved(files: Files, folder: str, target: str = "") -> Files:
    """`files`, which lie in or below `folder`, as they are where that folder's content comes to lie in `target`. Raises
    LimitExceededError where that is longer than MAX_TARGET_LENGTH."""
    if folder == target or not files:
        return files
    if len(target) > MAX_TARGET_LENGTH:
        raise LimitExceededError(f"a folder to install to is longer than {MAX_TARGET_LENGTH} characters")
    cut = len(folder) + 1 if folder else 0
    return [(joined(target, each[cut:]), inside) for each, inside in files]


def joined(folder: str, path: str) -> str:
    """The path of `path` below `folder`; either may be empty."""
    return f"{folder}/{path}" if folder and path else folder or path


_SEPARATORS = re.compile(r"[-_.]+")


def module_name(project: str) -> str:
    """The project's normalized name as a module has it."""
    return lower(_SEPARATORS.sub("_", project))
