"""Work out what pdm-backend puts into a wheel: packages in its package folder, or files that settings include."""

from collections.abc import Mapping
from typing import Any

from pypi_assets.distributions.backends import backend_names
from pypi_assets.distributions.members import Files, by_folder, merged, paths_of
from pypi_assets.distributions.path_patterns import Patterns, matching_paths
from pypi_assets.distributions.pyproject import items, strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.requirement_names import parse_requirement
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, joined, moved

_HOOKS = frozenset({"custom-hook", "run-setuptools", "build"})
"""Settings that name the project's own code, which may add modules."""
_ITSELF = frozenset({"pdm-backend", "pdm-pep517"})
_PLACED_SCHEMES = frozenset({"purelib", "platlib"})
"""Schemes of wheel-data that are installed to site-packages."""


def installed(tree: SourceTree) -> Installed:
    """Return the files selected by [tool.pdm.build], or by [tool.pdm] for pdm-pep517. The wheel may be empty.

    The settings are includes, excludes, package-dir, source-includes and wheel-data.
    """
    settings = tree.table("tool", "pdm", "build")
    if not settings and tree.is_built_by(backend_names.PDM_PEP517):
        settings = tree.table("tool", "pdm")
    declared = strings(settings.get("includes"))
    includes = _relative(declared)
    folder = settings.get("package-dir")
    folder = clean_path(folder) if isinstance(folder, str) else _default_folder(tree, includes or declared, settings)
    source_includes = _relative(strings(settings.get("source-includes")) or ["tests"])
    excludes = [*_relative(strings(settings.get("excludes"))), *source_includes]
    by = "pdm includes" if declared else "pdm packages"
    selected = includes if declared else _packages(tree, folder)
    files = _collected(tree, [*selected, *source_includes], excludes)
    if folder:
        inside = [each for each in files if f"{each[0]}/".startswith(f"{folder}/")]
        files = [each for each in files if not f"{each[0]}/".startswith(f"{folder}/")] + moved(inside, folder)
    placed, are_certain = _wheel_data(tree, settings.get("wheel-data"))
    files = merged([*files, *placed, *by_folder(_version_file(tree))])
    is_sure = are_certain and not _runs_code(tree, settings)
    return Installed(by, files, grade=ModulesGrade.EXACT if is_sure else ModulesGrade.DERIVED)


def _relative(patterns: list[str]) -> list[str]:
    """Return the cleaned patterns without those that begin with a slash, which match nothing in the project."""
    return [clean_path(pattern) for pattern in patterns if not pattern.startswith("/")]


def _runs_code(tree: SourceTree, settings: Mapping[str, Any]) -> bool:
    """Check whether the project's own code, or a plug-in required by the build, may add modules."""
    required = [parse_requirement(each) for each in strings(tree.table("build-system").get("requires"))]
    return (
        tree.has_file("pdm_build.py")
        or not _HOOKS.isdisjoint(settings)
        or tree.table("tool", "pdm", "version").get("source") == "call"
        or any(each is None or each[0] not in _ITSELF for each in required)
    )


def _version_file(tree: SourceTree) -> list[str]:
    """Return the module that `write_to` names. A build writes the version into it."""
    project = tree.table("project")
    path = tree.table("tool", "pdm", "version").get("write_to")
    is_written = isinstance(path, str) and "version" not in project and "version" in strings(project.get("dynamic"))
    return [clean_path(str(path))] if is_written else []


def _wheel_data(tree: SourceTree, wheel_data: object) -> tuple[Files, bool]:
    """Return the modules that wheel-data puts next to the packages, and whether the result is certain.

    It is uncertain if a glob has a variable, or if versions of Python select different files. An item is a glob whose
    files are placed without a folder, or a table with a glob and the folder that paths are relative to.
    """
    placed: list[str] = []
    are_certain = True
    paths = paths_of(tree.below("")) if isinstance(wheel_data, dict) else []
    for scheme, listed in items(wheel_data):
        if scheme not in _PLACED_SCHEMES or not isinstance(listed, list):
            continue
        for item in listed:
            written = item.get("path") if isinstance(item, dict) else item
            above = item.get("relative-to") if isinstance(item, dict) else None
            if not isinstance(written, str):
                continue
            are_certain &= not written.endswith("**") and "${" not in written
            matches = matching_paths(paths, [clean_path(written)], Patterns.FILE_GLOB, tree.effort)
            start = f"{clean_path(above)}/".lstrip("/") if isinstance(above, str) and above else None
            placed += [path.rpartition("/")[2] if start is None else path.removeprefix(start) for path in matches]
    return by_folder(placed), are_certain


def _packages(tree: SourceTree, folder: str) -> list[str]:
    """Return the packages directly in `folder`, with packages of stubs, or else a pattern for its modules."""
    stubs = [path for path in tree.sources if path.endswith("-stubs") and tree.has_file(f"{path}/__init__.pyi")]
    packages = [path for path in (*tree.packages, *stubs) if path.rpartition("/")[0] == folder and path != folder]
    return sorted(packages) or [joined(folder, "*.py")]


def _collected(tree: SourceTree, includes: list[str], excludes: list[str]) -> Files:
    """Return the included files, and the files below included folders that are not excluded.

    A `.pyc` file counts only if a pattern matches the file itself.
    If two patterns match the same path, the pattern with more parts wins, then the one with fewer wildcards, then the
    exclusion.
    """
    bytecode = paths_of(tree.bytecode(""))
    paths = [*paths_of(tree.below("")), *bytecode, *(folder for folder in tree.folders if folder)]
    included, excluded = _named_by(tree, includes, paths), _named_by(tree, excludes, paths)
    for path in included.keys() & excluded.keys():
        if _weight(included[path]) <= _weight(excluded[path]):
            del included[path]
        else:
            del excluded[path]
    compiled = frozenset(bytecode)
    left_out = tuple(f"{path}/" if path else "" for path in excluded)
    files: Files = []
    for path in included:
        if tree.has_file(path) or path in compiled:
            files += by_folder([path])
        else:
            inside = [each for each in paths_of(tree.below(path)) if not f"{each}/".startswith(left_out)]
            files += by_folder(inside)
    return merged(files)


def _named_by(tree: SourceTree, patterns: list[str], paths: list[str]) -> dict[str, str]:
    """Return the `paths` that the patterns match, each with its pattern. `a/**` also matches `a`, and "" is the top."""
    named: dict[str, str] = {}
    for pattern in patterns:
        matches = matching_paths(paths, [pattern], Patterns.FILE_GLOB, tree.effort)
        above = pattern.removesuffix("/**").removesuffix("**")
        named |= dict.fromkeys([*matches, *([above] if above != pattern or not pattern else [])], pattern)
    return named


def _weight(pattern: str) -> tuple[int, int]:
    parts = pattern.split("/")
    return len(parts), -sum(2 if part == "**" else bool(set(part) & set("*?[")) for part in parts)


def _default_folder(tree: SourceTree, includes: list[str], settings: Mapping[str, Any]) -> str:
    has_src = tree.has_folder("src")
    below_src = any(pattern.partition("/")[0] == "src" for pattern in includes)
    below_src = below_src and not {"src", "src/"} & set(strings(settings.get("excludes")))
    return "src" if below_src or (has_src and not includes) else ""
