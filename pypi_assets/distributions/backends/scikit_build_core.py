"""What scikit-build-core puts into a wheel: Python packages, and the modules that CMakeLists.txt builds."""

from pypi_assets.distributions.backends.cmake import MAX_VARIABLE_CHARACTERS, cmake_modules
from pypi_assets.distributions.members import by_folder
from pypi_assets.distributions.path_patterns import Patterns, without
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import (
    MAX_TARGET_LENGTH,
    Installed,
    SourceTree,
    clean_path,
    joined,
    module_name,
    moved,
)


def installed(tree: SourceTree) -> Installed | None:
    """wheel.packages, else the package of the project's name in src, python or the top; and CMake's modules."""
    packages = tree.table("tool", "scikit-build", "wheel").get("packages")
    by = "scikit-build packages"
    if isinstance(packages, dict):
        targets = {clean_path(target): clean_path(path) for target, path in packages.items() if isinstance(path, str)}
    elif isinstance(packages, list):
        targets = {clean_path(path).rpartition("/")[2]: clean_path(path) for path in strings(packages)}
    else:
        by = "scikit-build name"
        targets = _by_name(tree)
    files = [each for target, folder in targets.items() for each in moved(tree.below(folder), folder, target)]
    excludes = strings(tree.table("tool", "scikit-build", "wheel").get("exclude"))
    files = [*without(files, excludes, Patterns.GITIGNORE, tree.effort), *by_folder(_generated(tree))]
    source = _text(tree.table("tool", "scikit-build", "cmake").get("source-dir"))
    inside = _text(tree.table("tool", "scikit-build", "wheel").get("install-dir"))
    is_pure = joined(source, "CMakeLists.txt") not in tree.files or _is_cmake_off(tree)
    package = next(iter(targets), "")
    extensions = () if is_pure else cmake_modules(tree, package, _variables(tree), source, inside)
    if not files and not extensions:
        return None
    return Installed(by, files, extensions, ModulesGrade.EXACT if is_pure else ModulesGrade.DERIVED)


def _text(value: object) -> str:
    """A folder in the settings, which is the top where it is not given."""
    return clean_path(value) if isinstance(value, str) and len(value) <= MAX_TARGET_LENGTH else ""


def _variables(tree: SourceTree) -> dict[str, str]:
    """What scikit-build-core hands on to CMake, and the settings' definitions that are literal."""
    defined = tree.table("tool", "scikit-build", "cmake", "define")
    literal = {
        name: value
        for name, value in defined.items()
        if isinstance(value, str) and len(value) <= MAX_VARIABLE_CHARACTERS
    }
    return {"SKBUILD_PROJECT_NAME": module_name(tree.project or ""), "SKBUILD_PLATLIB_DIR": "", **literal}


def _is_cmake_off(tree: SourceTree) -> bool:
    """Whether no build runs CMake; what overrides it depends on the platform."""
    settings = tree.table("tool", "scikit-build")
    return tree.table("tool", "scikit-build", "wheel").get("cmake") is False and "overrides" not in settings


def _generated(tree: SourceTree) -> list[str]:
    """The modules that a build writes from templates."""
    entries = tree.table("tool", "scikit-build").get("generate")
    tables = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [clean_path(path) for entry in tables if isinstance(path := entry.get("path"), str) and path.endswith(".py")]


def _by_name(tree: SourceTree) -> dict[str, str]:
    written = tree.table("project").get("name")
    written = written if isinstance(written, str) else tree.project or ""
    names = (
        written.replace("-", "_").replace(".", "_"),
        module_name(written),
        written.replace("-", "_").replace(".", "/"),
    )
    for folder in ("src", "python", ""):
        for name in dict.fromkeys(names):
            if (path := f"{folder}/{name}".lstrip("/")) in tree.packages:
                return {name: path}
    return {}
