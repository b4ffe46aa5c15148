"""Work out where CMake's install() commands put compiled modules and files of the sdist."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pypi_assets.distributions.backends.cmake_text import source_path
from pypi_assets.distributions.members import Files, by_folder, paths_of
from pypi_assets.distributions.path_patterns import Patterns, matching_paths
from pypi_assets.distributions.source_tree import MAX_TARGET_LENGTH, SourceTree, joined

_KEYWORDS_TEXT = (
    "DESTINATION PERMISSIONS CONFIGURATIONS COMPONENT NAMELINK_COMPONENT RENAME OPTIONAL EXCLUDE_FROM_ALL TYPE EXPORT"
    " FILE_PERMISSIONS DIRECTORY_PERMISSIONS USE_SOURCE_PERMISSIONS FILES_MATCHING PATTERN REGEX MESSAGE_NEVER INCLUDES"
    " RUNTIME_DEPENDENCIES RUNTIME_DEPENDENCY_SET NAMELINK_ONLY NAMELINK_SKIP EXCLUDE"
)
_KEYWORDS = frozenset(_KEYWORDS_TEXT.split())
_ARTIFACTS_TEXT = "ARCHIVE LIBRARY RUNTIME OBJECTS FRAMEWORK BUNDLE PRIVATE_HEADER PUBLIC_HEADER RESOURCE"
_ARTIFACTS = frozenset(_ARTIFACTS_TEXT.split())
_LOADED = (".py", ".pyi", ".so", ".pyd")
_SUFFIX_REGEX = re.compile(r"(?:\.\*)?(?:\\*+\.|\[\.\])(\w{1,9})\$?", re.ASCII)
"""Matches the regular expressions that select files by suffix. Other regular expressions are ignored."""
MAX_INSTALLED = 20_000
"""The maximum number of files and targets that one build installs."""


@dataclass(frozen=True, slots=True)
class BuildTarget:
    """A target of the build.

    `prefix` begins the name of its file. A Python module counts even if no command installs it.
    """

    prefix: str = ""
    is_module: bool = False


@dataclass(slots=True)
class Installs:
    """The targets and files that the commands so far build and install.

    Folders are relative to `inside`. A module whose install folder is unknown belongs to `package`. If there are
    `components`, all other components are skipped.
    """

    tree: SourceTree
    package: str | None
    inside: str
    components: tuple[str, ...] = ()
    targets: dict[str, BuildTarget] = field(default_factory=dict)
    _properties: dict[str, dict[str, str]] = field(default_factory=dict)
    _destinations: dict[str, str | None] = field(default_factory=dict)
    _paths: dict[str, None] = field(default_factory=dict)

    def set_properties(self, target: str, properties: Mapping[str, str]) -> None:
        """Store properties of a target, which may be defined later."""
        if len(self._properties) < MAX_INSTALLED:
            self._properties.setdefault(target, {}).update(properties)

    def files(self) -> Files:
        """Return the modules that are installed as files."""
        return by_folder(self._paths)

    def modules(self) -> Iterator[str]:
        """Yield the dotted names of compiled modules. They may be invalid names if CMake's variables are unknown."""
        for name, target in self.targets.items():
            where = self._destinations.get(name)
            if where is None and target.is_module:
                where = self.package
            properties = self._properties.get(name, {})
            stem = properties.get("LIBRARY_OUTPUT_NAME") or properties.get("OUTPUT_NAME") or name
            if where is not None:
                yield joined(where, f"{properties.get('PREFIX', target.prefix)}{stem}").replace("/", ".")

    def add(self, texts: list[str], folder: str) -> None:
        """Store the items of one install() command that runs in `folder`."""
        kind, *rest = texts or [""]
        names, sections = _sections(rest)
        section = sections.get("LIBRARY", {}) | sections[""] if kind == "TARGETS" else sections[""]
        if kind == "TARGETS" and "DESTINATION" in sections.get("LIBRARY", {}):
            section |= {"DESTINATION": sections["LIBRARY"]["DESTINATION"]}
        component = section.get("COMPONENT", [])
        if self.components and not (component and component[0] in self.components):
            return
        where = self._destination(section.get("DESTINATION", []))
        if kind == "TARGETS":
            self._destinations |= dict.fromkeys(names, where)
        elif where is not None and kind in {"FILES", "PROGRAMS"}:
            self._add_files(names, where, section.get("RENAME", []), folder)
        elif where is not None and kind == "DIRECTORY":
            for name in names:
                self._add_folder(name, where, rest, folder)

    def _destination(self, texts: list[str]) -> str | None:
        """Return the folder relative to site-packages, or None if it is unknown or outside."""
        if len(texts) != 1 or len(texts[0]) > MAX_TARGET_LENGTH or "$" in texts[0]:
            return None
        text = texts[0]
        if text.startswith("<platlib>"):
            return source_path("", text.removeprefix("<platlib>").lstrip("/"))
        return source_path(self.inside, text.removeprefix("<prefix>/") or ".") if text != "<prefix>" else self.inside

    def _add_files(self, names: list[str], where: str, new_name: list[str], folder: str) -> None:
        for name in names:
            path = source_path(folder, name)
            is_there = path is None or self.tree.has_file(path)
            last = new_name[0] if len(new_name) == 1 else name.rpartition("/")[2]
            if is_there and last.endswith(_LOADED) and len(self._paths) < MAX_INSTALLED:
                self._paths[joined(where, last)] = None

    def _add_folder(self, name: str, where: str, rest: list[str], folder: str) -> None:
        source = source_path(folder, name)
        if source is None:
            return
        inside = where if name.endswith(("/", ".")) else joined(where, source.rpartition("/")[2])
        cut = len(source) + 1 if source else 0
        paths = [path[cut:] for path in paths_of(self.tree.below(source))]
        matched, excluded = _patterns(rest)
        effort = self.tree.effort
        if "FILES_MATCHING" in rest:
            paths = matching_paths(paths, matched, Patterns.FILE_GLOB, effort)
        skipped = set(matching_paths(paths, excluded, Patterns.GLOB, effort)) if excluded else set()
        for path in paths:
            if path not in skipped and len(self._paths) < MAX_INSTALLED:
                self._paths[joined(inside, path)] = None


def _sections(texts: list[str]) -> tuple[list[str], dict[str, dict[str, list[str]]]]:
    """Return the arguments before all keywords, and the values of keywords by kind of artifact ("" for all kinds)."""
    names: list[str] = []
    sections: dict[str, dict[str, list[str]]] = {"": {}}
    current, values = sections[""], names
    for text in texts:
        if text in _ARTIFACTS:
            current = sections.setdefault(text, {})
            values = []
        elif text in _KEYWORDS:
            values = current.setdefault(text, [])
        else:
            values.append(text)
    return names, sections


def _patterns(texts: list[str]) -> tuple[list[str], list[str]]:
    """Return the globs that select files of a folder, and the globs that exclude files."""
    matched: list[str] = []
    excluded: list[str] = []
    for at, text in enumerate(texts[:-1]):
        pattern = texts[at + 1]
        if text == "REGEX":
            suffix = _SUFFIX_REGEX.fullmatch(pattern)
            pattern = f"*.{suffix[1]}" if suffix else ""
        elif text != "PATTERN":
            continue
        if pattern:
            (excluded if texts[at + 2 : at + 3] == ["EXCLUDE"] else matched).append(f"**/{pattern}")
    return matched, excluded
