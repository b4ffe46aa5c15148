"""What pdm-backend puts into a wheel: the packages at its package folder, or what its settings include."""

from pypi_assets.distributions.path_patterns import Patterns, matching, without
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, moved

_HOOKS = frozenset({"custom-hook", "run-setuptools", "build"})
"""Settings that name code of the project's own, which may add modules."""


def installed(tree: SourceTree) -> Installed:
    """[tool.pdm.build] (for pdm-pep517 also [tool.pdm]) includes, excludes, package-dir and source-includes;
    where they select nothing the wheel is empty."""
    settings = tree.table("tool", "pdm", "build")
    if not settings and tree.table("build-system").get("build-backend") == "pdm.pep517.api":
        settings = tree.table("tool", "pdm")
    includes = [clean_path(pattern) for pattern in strings(settings.get("includes"))]
    folder = settings.get("package-dir")
    folder = clean_path(folder) if isinstance(folder, str) else _default_folder(tree, includes)
    if includes:
        by = "pdm includes"
        selected = matching(tree.below(""), includes, Patterns.GLOB, tree.effort)
    else:
        by = "pdm packages"
        packages = [path for path in tree.packages if path.rpartition("/")[0] == folder and path != folder]
        selected = [each for package in sorted(packages) for each in tree.below(package)] or tree.right_in([folder])
    source_includes = strings(settings.get("source-includes")) or ["tests"]
    excludes = [clean_path(pattern) for pattern in (*strings(settings.get("excludes")), *source_includes)]
    named = {pattern for pattern in includes if not set(pattern) & set("*?[")}
    files = without(selected, [pattern for pattern in excludes if pattern not in named], Patterns.GLOB, tree.effort)
    if folder:
        inside = [each for each in files if f"{each[0]}/".startswith(f"{folder}/")]
        files = [each for each in files if not f"{each[0]}/".startswith(f"{folder}/")] + moved(inside, folder)
    has_hooks = tree.has_file("pdm_build.py") or not _HOOKS.isdisjoint(settings)
    return Installed(by, files, grade=ModulesGrade.DERIVED if has_hooks else ModulesGrade.EXACT)


def _default_folder(tree: SourceTree, includes: list[str]) -> str:
    has_src = tree.has_folder("src")
    below_src = any(pattern.partition("/")[0] == "src" for pattern in includes)
    return "src" if below_src or (has_src and not includes) else ""
