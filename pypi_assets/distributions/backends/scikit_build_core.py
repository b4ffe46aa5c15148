"""What scikit-build-core puts into a wheel: Python packages, and the modules that CMakeLists.txt builds."""

from collections.abc import Mapping

from pypi_assets.distributions.backends.cmake import MAX_VARIABLE_CHARACTERS, cmake_modules
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Files, by_folder, merged, paths_of
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
    files = [*_selected(tree, targets), *by_folder(_generated(tree))]
    source = _text(tree.table("tool", "scikit-build", "cmake").get("source-dir"))
    inside = _text(tree.table("tool", "scikit-build", "wheel").get("install-dir"))
    is_pure = joined(source, "CMakeLists.txt") not in tree.files or _is_cmake_off(tree)
    package = next(iter(targets), "")
    if is_pure:
        return Installed(by, files) if files else None
    components = tuple(strings(tree.table("tool", "scikit-build", "install").get("components")))
    built = cmake_modules(tree, package, _variables(tree), source, inside, components)
    if not files and not built.files and not built.extensions:
        return None
    excludes = strings(tree.table("tool", "scikit-build", "wheel").get("exclude"))
    installed = without(built.files, excludes, Patterns.GITIGNORE, tree.effort)
    return Installed(by, merged([*files, *installed]), built.extensions, ModulesGrade.DERIVED)


def _selected(tree: SourceTree, targets: Mapping[str, str]) -> Files:
    """The files of the packages, each of which may be a single module, without what wheel.exclude names: a path in the
    wheel, or in the package. A file that two packages have is in the later one."""
    excludes = strings(tree.table("tool", "scikit-build", "wheel").get("exclude"))
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
    """A folder in the settings, which is the top where it is not given."""
    return clean_path(value) if isinstance(value, str) and len(value) <= MAX_TARGET_LENGTH else ""


def _variables(tree: SourceTree) -> dict[str, str]:
    """What scikit-build-core hands on to CMake, and the settings' definitions that are literal."""
    defined = tree.table("tool", "scikit-build", "cmake", "define")
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
        module_name(written),  # as earlier versions had it
        written.replace("-", "_").replace(".", "/"),
    )
    for folder in ("src", "python", ""):
        for name in dict.fromkeys(names):
            path = f"{folder}/{name}".lstrip("/")
            if path in tree.packages or tree.has_file(f"{path}/__init__.pyi"):
                return {name: path}
    return {}
