"""Find the modules that an sdist would install, from its files and without building it.

The build backend in pyproject.toml decides, by its settings and defaults (backends/). If they select nothing, the
declared import names count. If the backend is unknown or missing, the layout of the tree counts. Settings can make a
backend run any code, and modules that only a build creates are not found.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pypi_assets.characters import printable
from pypi_assets.distributions.backends import (
    backend_names,
    cmeel,
    flit,
    hatchling,
    maturin,
    meson_python,
    named_package,
    pdm,
    poetry,
    scikit_build_core,
    setuptools,
    uv_build,
)
from pypi_assets.distributions.backends.hatch_settings import hatch_settings
from pypi_assets.distributions.members import Files, Folder, by_folder, merged
from pypi_assets.distributions.metadata import parse_entry_points
from pypi_assets.distributions.module_names import ModuleNames, find_modules
from pypi_assets.distributions.pyproject import strings, table
from pypi_assets.distributions.record import AMBIGUOUS, ModulesGrade
from pypi_assets.distributions.source_tree import Installed, SourceTree, least_sure, module_name, moved

_NOT_INSTALLED = (
    "setup conftest test tests testing example examples sample samples demo demos doc docs documentation manual"
    " benchmark benchmarks bench asv_bench perf script scripts tool tools util utils bin build dist ci contrib extra"
    " extras tasks fabfile noxfile toxfile pavement changelog news newsfragments exercise exercises htmlcov"
    " node_modules site_scons SConstruct ez_setup distribute_setup bootstrap versioneer runtests release make vendor"
    " typings notebooks recipe etc debian"
)
NOT_INSTALLED = frozenset(_NOT_INSTALLED.split())
"""Top-level names that often lie next to a project's modules but are not installed."""
_SOURCE_FOLDERS = ("src", "lib", "python")


def installed_by_layout(tree: SourceTree) -> Installed | None:
    """Return the package of the project's name, or all files of a source folder, or packages or modules at the top.

    The package of the project's name may lie in a source folder or at the top.
    """
    named = module_name(tree.project or "")
    at_top = tree.named("", named) if named else None
    if at_top in tree.packages and not any(tree.named(folder, named) for folder in _SOURCE_FOLDERS):
        return Installed("project's name", tree.at(str(at_top)), grade=ModulesGrade.GUESSED)
    for folder in _SOURCE_FOLDERS:
        if folder not in tree.packages and (files := tree.below(folder)):
            return Installed(f"{folder} layout", moved(files, folder), grade=ModulesGrade.GUESSED)
    if named and (path := tree.named("", named)) and (files := tree.at(path)):
        return Installed("project's name", files, grade=ModulesGrade.GUESSED)
    tops = set(tree.tops) - NOT_INSTALLED
    files = [each for top in sorted(tops & tree.packages.keys()) for each in tree.below(top)]
    files = files or by_folder(f"{name}.py" for name in tree.modules_at_top if name not in NOT_INSTALLED)
    files = files or [each for top in sorted(tops) for each in tree.below(top)]
    return Installed("flat layout", files, grade=ModulesGrade.GUESSED) if files else None


def declared_names(tree: SourceTree) -> Installed | None:
    """Return the files of the import names that the metadata declare (PEP 794), wherever they lie."""
    files: Files = []
    for name in tree.declared:
        path = name.replace(".", "/")
        for folder in ("", *_SOURCE_FOLDERS):
            start = f"{folder}/{path}".lstrip("/")
            if below := tree.below(start) or tree.at(f"{start}.py"):
                files += moved(below, folder)
                break
    return Installed("Import-Name", files, grade=ModulesGrade.DERIVED) if files else None


Rule = Callable[[SourceTree], Installed | None]

_BACKENDS: tuple[tuple[frozenset[str], str, Rule], ...] = (
    (backend_names.SETUPTOOLS, "setuptools", setuptools.installed),
    (backend_names.AROUND_SETUPTOOLS, "", setuptools.installed),
    (backend_names.FLIT, "flit", flit.installed),
    (backend_names.HATCHLING, "hatch", hatchling.installed),
    (backend_names.POETRY, "poetry", poetry.installed),
    (backend_names.PDM, "pdm", pdm.installed),
    (frozenset({"uv_build"}), "", uv_build.installed),
    (frozenset({"maturin"}), "maturin", maturin.installed),
    (frozenset({"scikit_build_core.build"}), "scikit-build", scikit_build_core.installed),
    (frozenset({"mesonpy"}), "meson-python", meson_python.installed),
    (frozenset({"mesonpep517.buildapi"}), "mesonpep517", meson_python.installed),
    (frozenset({"cmeel", "cmeel.build"}), "cmeel", cmeel.installed),
    (frozenset({"whey"}), "whey", named_package.whey),
    (frozenset({"trampolim"}), "trampolim", named_package.trampolim),
    (
        frozenset({"py_build_cmake.build", "py_build_cmake.build_component"}),
        "py-build-cmake",
        named_package.py_build_cmake,
    ),
    (frozenset({"enscons.api"}), "enscons", named_package.enscons),
    (frozenset({"sphinx_theme_builder"}), "sphinx-theme-builder", named_package.sphinx_theme_builder),
)
"""The module names of each backend, the table of its settings below [tool], and its rule.

Only exact names count. Names that other readers need, too, are in `backend_names`.
"""


_REQUIREMENTS = frozenset({"dependencies", "optional-dependencies"})
_PLUGIN_GROUPS = ("setuptools.", "distutils.", "egg_info.")
"""The starts of entry point groups that setuptools calls during a build."""


@dataclass(frozen=True, slots=True)
class SdistModules:
    """The modules of an sdist.

    `names` are None if no rule finds them, and `by` is the name of the rule. The other fields are as in
    DistributionRecord.
    """

    names: tuple[str, ...] | None = None
    by: str | None = None
    grade: ModulesGrade = ModulesGrade.EXACT
    stubs: tuple[str, ...] = ()
    left_out: int = 0
    notes: tuple[str, ...] = ()


def find_sdist_modules(tree: SourceTree) -> SdistModules:
    """Return the modules that a build of `tree` would install."""
    named = _named_rule(tree)
    rules = (named, declared_names) if named else (*_likely_rules(tree), declared_names, installed_by_layout)
    for rule in rules:
        if (installed := rule(tree)) is not None:
            modules = find_modules(as_built(tree, installed))
            if modules.names or modules.stubs or rule in {named, setuptools.installed}:
                grade = least_sure(installed.grade, _doubt(tree, installed, modules))
                return SdistModules(
                    modules.names, installed.by, grade, modules.stubs, modules.unnameable, modules.notes
                )
    return SdistModules()


def _doubt(tree: SourceTree, installed: Installed, found: ModuleNames) -> ModulesGrade:
    """Return the certainty of the modules by reasons that do not depend on the rule that found them."""
    if installed.by == cmeel.RULE:
        return ModulesGrade.EXACT
    if not (found.names or found.stubs):
        has_modules = bool(tree.packages or set(tree.modules_at_top) - NOT_INSTALLED)
        return ModulesGrade.GUESSED if has_modules else ModulesGrade.EXACT
    if tree.backend and not tree.has_own_backend and _named_rule(tree) is None:
        return ModulesGrade.GUESSED
    compiles = installed.compiles_all and tree.uses_cython and _has_cython(installed.files)
    return ModulesGrade.DERIVED if tree.has_own_backend or compiles or _has_own_plugins(tree) else ModulesGrade.EXACT


def _named_rule(tree: SourceTree) -> Rule | None:
    """Return the rule of the declared backend, or None if it lies in the sdist, is unknown, or none is declared."""
    if tree.has_own_backend:
        return None
    return next((rule for names, _, rule in _BACKENDS if tree.backend in names), None)


def backend_note(tree: SourceTree) -> str | None:
    """Return a note if the build backend is not supported or lies in the sdist itself, since it may build anything."""
    if not tree.backend or _named_rule(tree):
        return None
    return f"{AMBIGUOUS} a build may differ: its build backend {printable(tree.backend, 100)} is not followed"


def plugin_note(tree: SourceTree) -> str | None:
    """Return a note if an .egg-info makes setuptools run code of the sdist as a plug-in."""
    if not _has_own_plugins(tree):
        return None
    return f"{AMBIGUOUS} a build may differ: setuptools runs plug-ins that lie in the sdist"


def hook_note(tree: SourceTree) -> str | None:
    """Return a note if the sdist has a hook by which the backend of PDM or hatchling may change the requirements."""
    if tree.is_built_by(backend_names.PDM):
        has_hook = tree.has_file("pdm_build.py") or "custom-hook" in tree.table("tool", "pdm", "build")
    elif tree.is_built_by(backend_names.HATCHLING):
        is_dynamic = not _REQUIREMENTS.isdisjoint(strings(tree.table("project").get("dynamic")))
        has_hook = is_dynamic and "custom" in table(hatch_settings(tree)[0], "metadata", "hooks")
    else:
        has_hook = False
    return (
        f"{AMBIGUOUS} a build may differ: a hook that lies in the sdist can change the metadata" if has_hook else None
    )


def _has_own_plugins(tree: SourceTree) -> bool:
    if tree.backend and not tree.is_built_by(backend_names.SETUPTOOLS | backend_names.AROUND_SETUPTOOLS):
        return False
    groups = [
        group
        for path, content in tree.files.items()
        if path.endswith(".egg-info/entry_points.txt")
        for group in parse_entry_points(content)
    ]
    return any(group.startswith(_PLUGIN_GROUPS) for group in groups)


def _likely_rules(tree: SourceTree) -> tuple[Rule, ...]:
    """Return the rule of setuptools if no backend is declared, or else the rules of backends that have settings.

    An .egg-info with a top_level.txt was written by setuptools, even if another tool called it.
    """
    if not tree.backend or tree.top_level is not None:
        return (setuptools.installed,)
    tool = tree.table("tool")
    return tuple(rule for _, table, rule in _BACKENDS if table in tool)


def as_built(tree: SourceTree, installed: Installed) -> Files:
    """Return the installed files as a build leaves them, with compiled modules for Cython sources and extensions."""
    files = installed.files
    if installed.compiles_all and tree.uses_cython and _has_cython(files):
        files = [(folder, Folder(inside.sources, inside.others.replace(".pyx/", ".so/"))) for folder, inside in files]
    if installed.extensions:
        files = [*files, *by_folder(f"{name.replace('.', '/')}.so" for name in installed.extensions)]
    return merged(files)


def _has_cython(files: Files) -> bool:
    return any(".pyx/" in inside.others for _, inside in files)
