"""Work out what backends install that take one package or module by name.

They are whey, trampolim, py-build-cmake, enscons and sphinx-theme-builder.
"""

from collections.abc import Iterable
from dataclasses import replace

from pypi_assets.distributions.backends.cmake import MAX_VARIABLE_CHARACTERS, cmake_modules
from pypi_assets.distributions.backends.manifest_in import apply_line
from pypi_assets.distributions.members import Files, by_folder, merged, paths_of
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, clean_path, joined, moved

_LOCAL_SETTINGS = ("py-build-cmake.local.toml", "py-build-cmake.cross.toml")
"""Files in which py-build-cmake finds settings that replace those in pyproject.toml."""


def whey(tree: SourceTree) -> Installed | None:
    """Return the package of [tool.whey], or the first part of the project's name, below source-dir.

    `additional-files` are lines in the syntax of MANIFEST.in.
    """
    settings = tree.table("tool", "whey")
    folder = clean_path(_text(settings.get("source-dir"), ""))
    project = _project(tree).partition(".")[0]
    stem = project.removesuffix("-stubs")
    default = stem.replace("-", "_") + project[len(stem) :]
    package = clean_path(_text(settings.get("package"), default).replace(".", "/"))
    files = tree.below(joined(folder, package))
    included, everything = {*paths_of(files)}, paths_of(tree.below(""))
    for line in strings(settings.get("additional-files")):
        included = apply_line(included, everything, line.split(), tree.effort)
    files = by_folder(sorted(included))
    return Installed("whey package", moved(files, folder)) if files else None


def trampolim(tree: SourceTree) -> Installed | None:
    """Return the modules of [tool.trampolim] top-level-modules, or the package of the project's name.

    They lie at the top or in `src`.
    """
    names = strings(tree.table("tool", "trampolim").get("top-level-modules"))
    return _installed(tree, "trampolim modules", names or [_project(tree).replace("-", "_")], ("", "src"))


def py_build_cmake(tree: SourceTree) -> Installed | None:
    """Return the module of [tool.py-build-cmake.module] and the modules that CMake installs.

    The module lies in `directory` or in its subfolder `src`.
    """
    settings = tree.table("tool", "py-build-cmake", "module")
    name = _text(settings.get("name"), _project(tree).replace("-", "_"))
    folder = clean_path(_text(settings.get("directory"), ""))
    module = _installed(tree, "py-build-cmake module", [name], [folder, joined(folder, "src")])
    cmake = tree.table("tool", "py-build-cmake", "cmake")
    if not cmake:
        has_others = any(map(tree.has_member, _LOCAL_SETTINGS))
        return replace(module, grade=ModulesGrade.GUESSED) if module and has_others else module
    keys = ("PY_BUILD_CMAKE_MODULE_NAME", "PY_BUILD_CMAKE_IMPORT_NAME", "PY_BUILD_CMAKE_PACKAGE_NAME")
    variables = dict.fromkeys(keys, name[:MAX_VARIABLE_CHARACTERS]) | {"CMAKE_INSTALL_PREFIX": "<prefix>"}
    components = tuple(strings(cmake.get("install_components")))
    built = cmake_modules(
        tree, name.replace(".", "/"), variables, clean_path(_text(cmake.get("source_path"), "")), "", components
    )
    files = merged([*(module.files if module else []), *built.files])
    if not files and not built.extensions:
        return None
    return Installed("py-build-cmake module", files, built.extensions, ModulesGrade.DERIVED)


def enscons(tree: SourceTree) -> Installed | None:
    """Return the packages of [tool.enscons], below src_root. They are a guess: SConstruct, a program, decides."""
    settings = tree.table("tool", "enscons")
    folder = clean_path(_text(settings.get("src_root"), ""))
    packages = [clean_path(each.replace(".", "/")) for each in strings(settings.get("packages"))]
    names = packages or [_project(tree).replace("-", "_")]
    return _installed(tree, "enscons packages", names, [folder], ModulesGrade.GUESSED)


def sphinx_theme_builder(tree: SourceTree) -> Installed | None:
    """Return the package of the project's name in `src`."""
    return _installed(tree, "theme package", [_project(tree).replace("-", "_")], ["src"], ModulesGrade.DERIVED)


def _installed(
    tree: SourceTree,
    by: str,
    names: Iterable[str],
    folders: Iterable[str],
    grade: ModulesGrade = ModulesGrade.EXACT,
) -> Installed | None:
    """Return all files of the named packages or modules, each from the first of `folders` that has it."""
    files: Files = []
    for name in names:
        if path := tree.first_named(folders, name.replace(".", "/")):
            source = next(
                each for each in sorted(folders, key=len, reverse=True) if f"{path}/".startswith(f"{each}/".lstrip("/"))
            )
            files += moved(tree.at(path), source)
    return Installed(by, files, grade=grade) if paths_of(files) else None


def _project(tree: SourceTree) -> str:
    """Return the project's name as written in the metadata."""
    written = tree.table("project").get("name")
    return written if isinstance(written, str) else tree.project or ""


def _text(value: object, default: str) -> str:
    return value if isinstance(value, str) else default
