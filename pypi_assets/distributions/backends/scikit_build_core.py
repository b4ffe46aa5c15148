"""Work out what scikit-build-core puts into a wheel: Python packages, and the modules that CMakeLists.txt builds."""

from collections.abc import Mapping
from typing import Any

from pypi_assets.distributions.backends.cmake import MAX_VARIABLE_CHARACTERS, cmake_modules
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Files, by_folder, merged, paths_of
from pypi_assets.distributions.path_patterns import Patterns, without
from pypi_assets.distributions.pyproject import strings, table, text_items
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import (
    MAX_TARGET_LENGTH,
    Installed,
    SourceTree,
    clean_path,
    joined,
    least_sure,
    module_name,
    moved,
)

MAX_OVERRIDES = 50
_OTHER_STATES = frozenset({"sdist", "editable", "metadata_editable"})
"""States in which pip builds no wheel from the sdist."""


def installed(tree: SourceTree) -> Installed | None:
    """Return the files selected by the settings, with and without their overrides.

    The machine, the version of Python or the environment decides which overrides apply, so every variant counts.
    """
    settings = tree.table("tool", "scikit-build")
    variants = [settings, *_overridden(settings)]
    tree.effort.spend(len(variants) * (1 + len(tree.members)))
    results = [each for variant in variants if (each := _installed(tree, variant)) is not None]
    if not results:
        return None
    first = results[0]
    grade = least_sure(*(each.grade for each in results))
    if len(results) < len(variants) or any(paths_of(each.files) != paths_of(first.files) for each in results):
        grade = least_sure(grade, ModulesGrade.DERIVED)
    files = merged([each for result in results for each in result.files])
    extensions = tuple(dict.fromkeys(name for each in results for name in each.extensions))
    if any(".gitignore/" in inside.others for inside in tree.members.values()):  # their patterns are not read
        grade = least_sure(grade, ModulesGrade.DERIVED)
    return Installed(first.by, files, extensions, grade)


def _overridden(settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the settings with each override alone, and with all of them. Overrides for sdists only are skipped."""
    listed = settings.get("overrides")
    tables = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    tables = [each for each in tables if table(each, "if").get("state") not in _OTHER_STATES]
    if len(tables) > MAX_OVERRIDES:
        raise LimitExceededError(f"more than {MAX_OVERRIDES} overrides")
    variants = [_with_override(settings, each) for each in tables]
    if len(tables) > 1:
        everything: Mapping[str, Any] = settings
        for each in tables:
            everything = _with_override(everything, each)
        variants.append({**everything})
    return variants


def _with_override(settings: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Return `settings` with an override whose conditions hold. `inherit` adds to lists and tables."""
    result = {**settings}
    for key, value in override.items():
        if key in {"if", "inherit"}:
            continue
        modes = table(override, "inherit").get(key)
        if isinstance(value, dict):
            inner = {**table(settings, key)}
            for name, each in value.items():
                inner[name] = _joined_values(
                    inner.get(name), each, modes.get(name) if isinstance(modes, dict) else None
                )
            result[key] = inner
        else:
            result[key] = _joined_values(settings.get(key), value, modes)
    return result


def _joined_values(old: object, new: object, mode: object) -> object:
    if mode in {"append", "prepend"} and isinstance(old, list) and isinstance(new, list):
        return [*old, *new] if mode == "append" else [*new, *old]
    if mode in {"append", "prepend"} and isinstance(old, dict) and isinstance(new, dict):
        return old | new if mode == "append" else new | old
    return new


def _installed(tree: SourceTree, settings: Mapping[str, Any]) -> Installed | None:
    """Return the packages of wheel.packages or the project's name, the modules of CMake, and wheel.force-include.

    The package of the project's name lies in `src`, `python` or the top folder.
    """
    wheel = table(settings, "wheel")
    packages = wheel.get("packages")
    by = "scikit-build packages"
    if isinstance(packages, dict):
        targets = {clean_path(target): clean_path(path) for target, path in packages.items() if isinstance(path, str)}
    elif isinstance(packages, list):
        targets = {clean_path(path).rpartition("/")[2]: clean_path(path) for path in strings(packages)}
    else:
        by = "scikit-build name"
        targets = _by_name(tree)
    excludes = strings(wheel.get("exclude"))
    files = [*_selected(tree, targets, excludes), *by_folder(_generated(settings)), *_forced(tree, wheel, excludes)]
    source = _text(table(settings, "cmake").get("source-dir"))
    inside = _text(wheel.get("install-dir"))
    is_pure = joined(source, "CMakeLists.txt") not in tree.files or wheel.get("cmake") is False
    package = next(iter(targets), "")
    if is_pure:
        return Installed(by, files) if files else None
    components = tuple(strings(table(settings, "install").get("components")))
    built = cmake_modules(tree, package, _variables(tree, settings), source, inside, components)
    if not files and not built.files and not built.extensions:
        return None
    installed = without(built.files, excludes, Patterns.GITIGNORE, tree.effort)
    return Installed(by, merged([*files, *installed]), built.extensions, ModulesGrade.DERIVED)


def _forced(tree: SourceTree, wheel: Mapping[str, Any], excludes: list[str]) -> Files:
    """Return the files that wheel.force-include places. Excludes apply to folders but not to single files."""
    files: Files = []
    for source, target in text_items(wheel.get("force-include")):
        path, place = clean_path(source), clean_path(target.removeprefix("${SKBUILD_PLATLIB_DIR}"))
        if place.startswith("${") or target.startswith("/"):
            continue
        if tree.has_member(path):
            files += by_folder([place])
        else:
            files += without(moved(tree.below(path), path, place), excludes, Patterns.GITIGNORE, tree.effort)
    return files


def _selected(tree: SourceTree, targets: Mapping[str, str], excludes: list[str]) -> Files:
    """Return the files of the packages without those that wheel.exclude names.

    A package may be a single module. A pattern may be relative to the wheel or to the package. If two packages contain
    the same file, the later one installs it.
    """
    placed: dict[str, str] = {}
    for target, source in targets.items():
        if len(target) > MAX_TARGET_LENGTH:
            raise LimitExceededError(f"a package to install to is longer than {MAX_TARGET_LENGTH} characters")
        if source.endswith(".py") and tree.has_file(source):
            placed[source] = target
            continue
        inside = without(moved(tree.below(source), source), excludes, Patterns.GITIGNORE, tree.effort)
        placed |= {joined(source, path): joined(target, path) for path in paths_of(inside)}
    return without(by_folder(placed.values()), excludes, Patterns.GITIGNORE, tree.effort)


def _text(value: object) -> str:
    """Return a folder from the settings, or the top folder if it is not given."""
    return clean_path(value) if isinstance(value, str) and len(value) <= MAX_TARGET_LENGTH else ""


def _variables(tree: SourceTree, settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the variables that scikit-build-core passes to CMake, and the literal definitions in the settings."""
    defined = table(settings, "cmake", "define")
    literal = {
        name: value
        for name, value in defined.items()
        if isinstance(value, str) and len(value) <= MAX_VARIABLE_CHARACTERS
    } | {name: "ON" if value else "OFF" for name, value in defined.items() if isinstance(value, bool)}
    return {
        "SKBUILD_PROJECT_NAME": module_name(tree.project or ""),
        "SKBUILD": "2",
        "SKBUILD_PLATLIB_DIR": "<platlib>",
        "SKBUILD_PURELIB_DIR": "<platlib>",
        "CMAKE_INSTALL_PREFIX": "<prefix>",
        **literal,
    }


def _generated(settings: Mapping[str, Any]) -> list[str]:
    """Return the modules that a build writes from templates."""
    entries = settings.get("generate")
    tables = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [clean_path(path) for entry in tables if isinstance(path := entry.get("path"), str) and path.endswith(".py")]


def _by_name(tree: SourceTree) -> dict[str, str]:
    written = tree.table("project").get("name")
    written = written if isinstance(written, str) else tree.project or ""
    names = (
        written.replace("-", "_").replace(".", "_"),
        module_name(written),  # the name in earlier versions
        written.replace("-", "_").replace(".", "/"),
    )
    for folder in ("src", "python", ""):
        for name in dict.fromkeys(names):
            path = f"{folder}/{name}".lstrip("/")
            if path in tree.packages or tree.has_file(f"{path}/__init__.pyi"):
                return {name: path}
    return {}
