"""What pdm-backend puts into a wheel: the packages at its package folder, or what its settings include."""

from pypi_assets.distributions.backends import backend_names
from pypi_assets.distributions.members import Files, by_folder, merged, paths_of
from pypi_assets.distributions.path_patterns import Patterns, matching_paths
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, joined, moved

_HOOKS = frozenset({"custom-hook", "run-setuptools", "build"})
"""Settings that name code of the project's own, which may add modules."""


def installed(tree: SourceTree) -> Installed:
    """[tool.pdm.build] (for pdm-pep517 also [tool.pdm]) includes, excludes, package-dir and source-includes;
    where they select nothing the wheel is empty."""
    settings = tree.table("tool", "pdm", "build")
    if not settings and tree.is_built_by(backend_names.PDM_PEP517):
        settings = tree.table("tool", "pdm")
    includes = [clean_path(pattern) for pattern in strings(settings.get("includes"))]
    folder = settings.get("package-dir")
    folder = clean_path(folder) if isinstance(folder, str) else _default_folder(tree, includes)
    source_includes = [clean_path(each) for each in strings(settings.get("source-includes")) or ["tests"]]
    excludes = [*map(clean_path, strings(settings.get("excludes"))), *source_includes]
    by = "pdm includes" if includes else "pdm packages"
    files = _collected(tree, [*(includes or _packages(tree, folder)), *source_includes], excludes)
    if folder:
        inside = [each for each in files if f"{each[0]}/".startswith(f"{folder}/")]
        files = [each for each in files if not f"{each[0]}/".startswith(f"{folder}/")] + moved(inside, folder)
    has_hooks = tree.has_file("pdm_build.py") or not _HOOKS.isdisjoint(settings)
    return Installed(by, files, grade=ModulesGrade.DERIVED if has_hooks else ModulesGrade.EXACT)


def _packages(tree: SourceTree, folder: str) -> list[str]:
    """The packages right in `folder`, those of stubs included; where there are none, a pattern for its modules."""
    stubs = [path for path in tree.sources if path.endswith("-stubs") and tree.has_file(f"{path}/__init__.pyi")]
    found = [path for path in (*tree.packages, *stubs) if path.rpartition("/")[0] == folder and path != folder]
    return sorted(found) or [joined(folder, "*.py")]


def _collected(tree: SourceTree, includes: list[str], excludes: list[str]) -> Files:
    """What the patterns include: files, and what lies below folders without what is excluded. Of two patterns for the
    same path, the one with more parts counts, then the one with fewer wildcards, then the exclusion."""
    paths = [*paths_of(tree.below("")), *(folder for folder in tree.folders if folder)]
    included, excluded = _named_by(tree, includes, paths), _named_by(tree, excludes, paths)
    for path in included.keys() & excluded.keys():
        if _weight(included[path]) <= _weight(excluded[path]):
            del included[path]
        else:
            del excluded[path]
    left_out = tuple(f"{path}/" if path else "" for path in excluded)
    files: Files = []
    for path in included:
        if tree.has_file(path):
            files += by_folder([path])
        else:
            inside = [each for each in paths_of(tree.below(path)) if not f"{each}/".startswith(left_out)]
            files += by_folder(inside)
    return merged(files)


def _named_by(tree: SourceTree, patterns: list[str], paths: list[str]) -> dict[str, str]:
    """Those of `paths` that patterns match, each with its pattern; `a/**` matches `a` too, and "" is the top."""
    named: dict[str, str] = {}
    for pattern in patterns:
        found = matching_paths(paths, [pattern], Patterns.FILE_GLOB, tree.effort)
        above = pattern.removesuffix("/**").removesuffix("**")
        named |= dict.fromkeys([*found, *([above] if above != pattern or not pattern else [])], pattern)
    return named


def _weight(pattern: str) -> tuple[int, int]:
    parts = pattern.split("/")
    return len(parts), -sum(2 if part == "**" else bool(set(part) & set("*?[")) for part in parts)


def _default_folder(tree: SourceTree, includes: list[str]) -> str:
    has_src = tree.has_folder("src")
    below_src = any(pattern.partition("/")[0] == "src" for pattern in includes)
    return "src" if below_src or (has_src and not includes) else ""
