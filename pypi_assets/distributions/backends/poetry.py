"""Work out what poetry installs: the packages in its settings or the package named like the project, and includes."""

from collections.abc import Iterator, Mapping
from typing import Any

from pypi_assets.distributions.members import Files, by_folder, paths_of
from pypi_assets.distributions.path_patterns import Patterns, matching, matching_paths
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, module_name, moved


def installed(tree: SourceTree) -> Installed | None:
    """Return the files of [tool.poetry] packages and include, without the files that exclude names.

    If several entries name the same file, the first decides its target. Entries have the keys include, from, to and
    format.
    """
    settings = tree.table("tool", "poetry")
    paths: dict[str, str] = {}
    packages = [each for each in _entries(settings.get("packages"), "include") if _in_wheel(each, by_default=True)]
    for entry in packages:
        source, target = (
            clean_path(value) if isinstance(value := entry.get(key), str) else "" for key in ("from", "to")
        )
        paths = _placed(_globbed(tree, source, entry["include"]), source, target) | paths
    if not packages:
        name = settings.get("name")
        found_at = _by_name(tree, module_name(name if isinstance(name, str) else tree.project or ""))
        if found_at is None:
            return None
        paths |= _placed(tree.at(found_at), "src" if found_at.startswith("src/") else "", "")
    included: dict[str, str] = {}
    for entry in _entries(settings.get("include"), "path"):
        if _in_wheel(entry, by_default=_includes_in_wheels(tree)):
            included |= _placed(_globbed(tree, "", entry["path"]), "", "")
    excludes = map(clean_path, strings(settings.get("exclude")))
    for path in matching_paths([path for path in paths if path not in included], excludes, Patterns.GLOB, tree.effort):
        del paths[path]
    paths = included | paths
    grade = ModulesGrade.DERIVED if "build" in settings else ModulesGrade.EXACT  # the build script may add modules
    by = "poetry packages" if packages else "poetry name"
    return Installed(by, by_folder(paths.values()), grade=grade) if paths else None


def _placed(files: Files, source: str, target: str) -> dict[str, str]:
    """Return the installed path of each of `files`, by its path in the sdist."""
    return dict(zip(paths_of(files), paths_of(moved(files, source, target)), strict=True))


def _entries(value: object, key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the tables that have a text at `key`. A text alone stands for such a table."""
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, str):
            yield {key: entry}
        elif isinstance(entry, dict) and isinstance(entry.get(key), str):
            yield entry


def _in_wheel(entry: Mapping[str, Any], *, by_default: bool) -> bool:
    return "wheel" in strings(entry["format"]) if "format" in entry else by_default


def _includes_in_wheels(tree: SourceTree) -> bool:
    """Check whether an include without a format goes into wheels, as it does before poetry-core 2."""
    required = strings(tree.table("build-system").get("requires"))
    return not required or any("<2" in each.replace(" ", "") or "poetry-core" not in each for each in required)


def _globbed(tree: SourceTree, source: str, include: str) -> Files:
    path = clean_path(f"{source}/{include}")
    if not set(path) & set("*?["):
        return tree.at(path)
    return matching(tree.below(source), [path], Patterns.GLOB, tree.effort)


def _by_name(tree: SourceTree, name: str) -> str | None:
    return tree.first_named(("", "src"), name)
