"""What poetry installs: the packages in its settings, or the one named like the project, and further includes."""

from collections.abc import Iterator, Mapping
from typing import Any

from pypi_assets.distributions.members import Files, by_folder, paths_of
from pypi_assets.distributions.path_patterns import Patterns, matching, matching_paths
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, module_name, moved


def installed(tree: SourceTree) -> Installed | None:
    """[tool.poetry] packages (include, from, to, format) without what exclude names, and include. The first entry that
    names a file decides where it goes."""
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
    grade = ModulesGrade.DERIVED if "build" in settings else ModulesGrade.EXACT  # a script that may add modules
    by = "poetry packages" if packages else "poetry name"
    return Installed(by, by_folder(paths.values()), grade=grade) if paths else None


def _placed(files: Files, source: str, target: str) -> dict[str, str]:
    """For the path of each of `files`, where it is installed."""
    return dict(zip(paths_of(files), paths_of(moved(files, source, target)), strict=True))


def _entries(value: object, key: str) -> Iterator[Mapping[str, Any]]:
    """Tables with a text at `key`; a text alone is such a table."""
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, str):
            yield {key: entry}
        elif isinstance(entry, dict) and isinstance(entry.get(key), str):
            yield entry


def _in_wheel(entry: Mapping[str, Any], *, by_default: bool) -> bool:
    return "wheel" in strings(entry["format"]) if "format" in entry else by_default


def _includes_in_wheels(tree: SourceTree) -> bool:
    """Until version 2, an include without a format went into wheels too."""
    required = strings(tree.table("build-system").get("requires"))
    return not required or any("<2" in each.replace(" ", "") or "poetry-core" not in each for each in required)


def _globbed(tree: SourceTree, source: str, include: str) -> Files:
    path = clean_path(f"{source}/{include}")
    if not set(path) & set("*?["):
        return tree.at(path)
    return matching(tree.below(source), [path], Patterns.GLOB, tree.effort)


def _by_name(tree: SourceTree, name: str) -> str | None:
    return tree.first_named(("", "src"), name)
