"""Work out what hatchling puts into a wheel: files selected by its settings, or the package named like the project."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pypi_assets.characters import normalized_name
from pypi_assets.distributions.backends.hatch_settings import (
    ALWAYS_EXCLUDED,
    IGNORE_FILES,
    IgnoredPatterns,
    build_hooks,
    hatch_settings,
    ignored_patterns,
    wheel_settings,
)
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Files, by_folder, merged, paths_of
from pypi_assets.distributions.path_patterns import Patterns, matching, without
from pypi_assets.distributions.pyproject import strings, table, text_items
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import (
    MAX_TARGET_LENGTH,
    Installed,
    SourceTree,
    clean_path,
    joined,
    least_sure,
    moved,
)

_NO_NAME_CHARACTERS = re.compile(r"[^\w.]+", re.ASCII)

_VERSION_HOOKS = {"vcs": "version-file", "version": "path"}
"""Hooks that write a file, and the setting that names it. Most sdists already contain this file."""


def installed(tree: SourceTree) -> Installed | None:
    """Return the files selected by the settings of the wheel target or of the build, in hatch.toml or pyproject.toml.

    The settings are packages, only-include, include, exclude, only-packages, artifacts, sources and force-include.
    Files that .gitignore and .hgignore name are skipped.
    """
    all_settings, are_read = hatch_settings(tree)
    settings = wheel_settings(all_settings)
    packages = [clean_path(path) for path in strings(settings.get("packages"))]
    only = [clean_path(path) for path in strings(settings.get("only-include"))]
    include = strings(settings.get("include"))
    takes_all = True  # with an empty list nothing is selected by name, and all files are candidates
    by = "hatch settings"
    if not packages and not only and not include:
        by = "hatch name"
        named = _by_name(tree)
        if named is None:
            takes_all = False
        elif named.endswith(".py"):
            only = [named] if "only-include" not in settings else []
        else:
            packages = [named] if "packages" not in settings else []
    sources = _sources(settings.get("sources"), packages)
    forced = _Forced.of(tree, settings.get("force-include"), sources)
    roots = dict.fromkeys(only or packages)
    candidates = [each for root in roots for each in tree.at(root)]
    if not roots and takes_all:
        candidates = forced.outside(tree.below(""))
    ignored = IgnoredPatterns() if settings.get("ignore-vcs") is True else ignored_patterns(tree)
    written = [
        path for path in _written(all_settings) if not tree.has_file(path) and _is_walked(path, roots, candidates)
    ]
    selected = _selected(tree, settings, candidates, roots, ignored.patterns)
    unignored = selected if ignored.count_everywhere else _selected(tree, settings, candidates, roots, ())
    tree.effort.spend((len(unignored) + len(forced.files)) * len(sources))
    unplaced = merged([*unignored, *by_folder(written)])
    files = forced.left_in([(_moved_by(sources, folder), inside) for folder, inside in unplaced])
    files += [(_moved_by(sources, folder), inside) for folder, inside in forced.files]
    doubts = (
        ModulesGrade.EXACT if are_read else ModulesGrade.GUESSED,
        ModulesGrade.DERIVED if build_hooks(all_settings).keys() - _VERSION_HOOKS.keys() else ModulesGrade.EXACT,
        ModulesGrade.DERIVED if written else ModulesGrade.EXACT,
        ModulesGrade.EXACT if paths_of(unignored) == paths_of(selected) else ModulesGrade.DERIVED,
        ModulesGrade.DERIVED if forced.is_missing or tree.has_unread(*IGNORE_FILES) else ModulesGrade.EXACT,
    )
    # the selected files may not be modules, and the patterns may exclude everything
    is_chosen = settings.get("bypass-selection") is True or bool(
        strings(settings.get("artifacts")) or forced.sources or candidates
    )
    return Installed(by, files, grade=least_sure(*doubts)) if files or is_chosen else None


def _written(settings: Mapping[str, Any]) -> list[str]:
    """Return the modules that hooks write. No setting excludes them."""
    hooks = build_hooks(settings)
    paths = [table(hooks, name).get(option) for name, option in _VERSION_HOOKS.items()]
    return [clean_path(path) for path in paths if isinstance(path, str) and path.endswith(".py")]


def _is_walked(path: str, roots: Collection[str], found: Files) -> bool:
    """Check whether hatchling visits a file at `path`."""
    return any(path.startswith(f"{root}/") for root in roots) if roots else bool(found)


def _selected(
    tree: SourceTree, settings: Mapping[str, Any], found: Files, roots: Collection[str], ignored: tuple[str, ...]
) -> Files:
    """Return the files of `found` that the patterns leave.

    `found` are the files in `roots`, or all files if there are no roots. A root that is a file is always included, and
    so are artifacts.
    """
    as_files = [root for root in roots if tree.has_file(root) or (root.endswith(".pyc") and tree.has_member(root))]
    excludes = [*ALWAYS_EXCLUDED, *ignored, *strings(settings.get("exclude"))]
    selected = found
    if not roots and (include := strings(settings.get("include"))):
        selected = matching(found, include, Patterns.GITIGNORE, tree.effort)
    selected = without(selected, excludes, Patterns.GITIGNORE, tree.effort)
    if settings.get("only-packages") is True:
        selected = by_folder(path for path in paths_of(selected) if _is_in_package(tree, path))
    if named := strings(settings.get("artifacts")):
        found = [*found, *(each for root in roots or [""] for each in tree.bytecode(root))]
    artifacts = matching(found, named, Patterns.GITIGNORE, tree.effort)
    return merged([*selected, *by_folder(as_files), *artifacts])


@dataclass(frozen=True, slots=True)
class _Forced:
    """The files that force-include places.

    `files` are at their targets, before `sources` moves them. `sources` are paths, already moved, that are no longer
    installed from their original place. `is_missing` is True if one of them is missing or lies outside of the sdist.
    """

    files: Files
    sources: frozenset[str]
    is_missing: bool

    @classmethod
    def of(cls, tree: SourceTree, value: object, moves: Mapping[str, str]) -> "_Forced":
        files: Files = []
        sources = set()
        is_missing = False
        for written, target in text_items(value):
            tree.effort.spend(4 + len(tree.members) // 8)
            source = clean_path(written)
            placed = _placed(tree, source, clean_path(target))
            files += placed
            folder, _, name = source.rpartition("/")
            sources.add(joined(_moved_by(moves, folder), name))
            is_missing |= written.startswith(("/", "~")) or ".." in source.split("/") or not tree.has_any(source)
        return cls(files, frozenset(sources), is_missing)

    def outside(self, files: Files) -> Files:
        """Return `files` without the folders that are placed elsewhere."""
        if not self.sources:
            return files
        placed = tuple(f"{source}/" for source in self.sources)
        return [each for each in files if not f"{each[0]}/".startswith(placed)]

    def left_in(self, files: Files) -> Files:
        """Return `files` without the files that are placed elsewhere."""
        if self.sources.isdisjoint(paths := paths_of(files)):
            return files
        return by_folder(path for path in paths if path not in self.sources)


def _placed(tree: SourceTree, source: str, target: str) -> Files:
    """Return a file of any kind at its target, or the modules of a folder below its target."""
    if tree.has_member(source):
        return by_folder([target])
    return moved([*tree.below(source), *tree.bytecode(source)], source, target)


def _is_in_package(tree: SourceTree, path: str) -> bool:
    folder = path.rpartition("/")[0]
    return folder in tree.packages or (not folder and tree.has_file("__init__.py"))


def _sources(value: object, packages: list[str]) -> dict[str, str]:
    """Return path prefixes that end with `/` and their replacements, in the order in which they apply."""
    sources = {f"{clean_path(source)}/": "" for source in strings(value)}
    for source, target in text_items(value):
        if len(folder := clean_path(target)) > MAX_TARGET_LENGTH:
            raise LimitExceededError(f"a folder in sources is longer than {MAX_TARGET_LENGTH} characters")
        sources[f"{clean_path(source)}/".lstrip("/")] = f"{folder}/" if folder else ""
    for package in packages:
        if (folder := package.rpartition("/")[0]) and f"{package}/" not in sources:
            sources[f"{folder}/"] = ""
    return dict(sorted(sources.items()))


def _moved_by(sources: Mapping[str, str], folder: str) -> str:
    start = f"{folder}/" if folder else ""
    for source, target in sources.items():
        if start.startswith(source):
            return f"{target}{start[len(source) :]}".removesuffix("/")
    return folder


def _by_name(tree: SourceTree) -> str | None:
    """Return the path of the package, single module or namespace that has the project's name."""
    written = tree.table("project").get("name")
    written = written if isinstance(written, str) else tree.project or ""
    for project in dict.fromkeys((written, normalized_name(written))):
        name = _NO_NAME_CHARACTERS.sub("_", project)
        for folder in ("", "src"):
            path = tree.named(folder, name)
            if path is not None and path in tree.packages:
                return path
        if tree.has_file(f"{name}.py"):
            return f"{name}.py"
        namespaces = [path for path in tree.packages if path.count("/") == 1 and path.endswith(f"/{name}")]
        if len(namespaces) == 1:
            return namespaces[0].partition("/")[0]
    return None
