"""What hatchling puts into a wheel: the files that its settings select, or the package named like the project."""

import re
from typing import Any

from pypi_assets.characters import normalized_name
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import by_folder, merged, paths_of
from pypi_assets.distributions.path_patterns import Patterns, matching, without
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import MAX_TARGET_LENGTH, Installed, SourceTree, clean_path, moved

_NO_NAME_CHARACTERS = re.compile(r"[^\w.]+", re.ASCII)

_VERSION_HOOKS = {"vcs", "version"}


def installed(tree: SourceTree) -> Installed | None:
    """packages, only-include, include, exclude, only-packages, artifacts, sources and force-include of the wheel
    target, else of the build."""
    build = tree.table("tool", "hatch", "build")
    wheel = tree.table("tool", "hatch", "build", "targets", "wheel")

    def setting(name: str) -> Any:
        return wheel[name] if name in wheel else build.get(name)

    packages = [clean_path(path) for path in strings(setting("packages"))]
    only = [clean_path(path) for path in strings(setting("only-include"))]
    include = strings(setting("include"))
    by = "hatch settings"
    if not packages and not only and not include:
        by = "hatch name"
        if (named := _by_name(tree)) is not None:
            packages, only = ([], [named]) if named.endswith(".py") else ([named], [])
    roots = dict.fromkeys(only or packages)
    if roots:
        selected = [each for root in roots for each in tree.at(root)]
    elif include:
        selected = matching(tree.below(""), include, Patterns.GITIGNORE, tree.effort)
    else:
        selected = []
    walked = selected if roots else tree.below("")
    selected = without(selected, strings(setting("exclude")), Patterns.GITIGNORE, tree.effort)
    if setting("only-packages") is True:
        selected = by_folder(path for path in paths_of(selected) if path in roots or _is_in_package(tree, path))
    if artifacts := strings(setting("artifacts")):  # no other setting leaves them out
        selected = merged([*selected, *matching(walked, artifacts, Patterns.GITIGNORE, tree.effort)])
    sources = _sources(setting("sources"), packages)
    forced = setting("force-include")
    for source, target in forced.items() if isinstance(forced, dict) else ():
        if isinstance(target, str):
            source, target = clean_path(source), clean_path(target)
            selected += by_folder([target]) if tree.has_file(source) else moved(tree.below(source), source, target)
    tree.effort.spend(len(selected) * len(sources))
    files = [(_moved_by(sources, folder), inside) for folder, inside in selected]
    is_chosen = setting("bypass-selection") is True or bool(artifacts)  # what is chosen may be no module
    return Installed(by, files, grade=_grade(tree)) if files or is_chosen else None


def _grade(tree: SourceTree) -> ModulesGrade:
    """Hooks may add files that only a build writes; those for the version write one that is in the sdist."""
    build = ("tool", "hatch", "build")
    hooks = {*tree.table(*build, "hooks"), *tree.table(*build, "targets", "wheel", "hooks")}
    return ModulesGrade.DERIVED if hooks - _VERSION_HOOKS else ModulesGrade.EXACT


def _is_in_package(tree: SourceTree, path: str) -> bool:
    folder = path.rpartition("/")[0]
    return folder in tree.packages or (not folder and tree.has_file("__init__.py"))


def _sources(value: object, packages: list[str]) -> dict[str, str]:
    """Starts of paths, with a `/` at their ends, and what replaces them."""
    sources = {f"{clean_path(source)}/": "" for source in strings(value)}
    if isinstance(value, dict):
        for source, target in value.items():
            if isinstance(target, str):
                if len(folder := clean_path(target)) > MAX_TARGET_LENGTH:
                    raise LimitExceededError(f"a folder in sources is longer than {MAX_TARGET_LENGTH} characters")
                sources[f"{clean_path(source)}/".lstrip("/")] = f"{folder}/" if folder else ""
    for package in packages:
        if folder := package.rpartition("/")[0]:
            sources.setdefault(f"{folder}/", "")
    return sources


def _moved_by(sources: dict[str, str], folder: str) -> str:
    start = f"{folder}/" if folder else ""
    for source, target in sources.items():
        if start.startswith(source):
            return f"{target}{start[len(source) :]}".removesuffix("/")
    return folder


def _by_name(tree: SourceTree) -> str | None:
    """The package, single module or namespace that has the project's name."""
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
