"""Which modules an sdist would install, told from its files without building it.

Rules are tried in order and the first that finds a module decides; a note names it. They are heuristics: a build
backend can be told anything. Extension modules are not seen, since they are only built later, except where the
project declares them.
"""

import configparser
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from pypi_assets.distributions.modules import MAX_NAME_LENGTH, ancestry, find_modules

MAX_DECLARED = 1000
MAX_OTHER_ROOTS = 20
_SOURCE_FOLDERS = ("", "src", "lib", "python")
_NAME_BACKENDS = ("flit", "hatchling", "poetry", "uv_build", "maturin", "whey", "enscons", "scikit_build_core")
_NOT_INSTALLED = (
    "setup conftest test tests testing example examples sample samples demo demos doc docs documentation manual"
    " benchmark benchmarks bench asv_bench perf script scripts tool tools util utils bin build dist ci contrib extra"
    " extras tasks fabfile noxfile toxfile pavement changelog news newsfragments exercise exercises htmlcov"
    " node_modules site_scons SConstruct ez_setup distribute_setup bootstrap versioneer runtests release make vendor"
    " typings notebooks recipe etc debian"
)
NOT_INSTALLED = frozenset(_NOT_INSTALLED.split())
"""Top-level names that lie beside a project's modules and are not installed, as setuptools' own discovery has it."""


@dataclass(frozen=True, slots=True)
class SourceTree:
    """What the rules look at; paths are relative to the sdist's top folder.

    `declared` are the import names that the project declares, by the file `declared_by`.
    """

    members: list[str]
    project: str | None
    declared: tuple[str, ...]
    declared_by: str
    egg_info: str | None
    pyproject: Mapping[str, Any]
    setup_cfg: str
    _grouped: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def modules_by_top(self, root: str) -> dict[str, set[str]]:
        """The modules below the folder `root` (`""` is the top) by their top-level names. Kept, since rules repeat."""
        if root not in self._grouped:
            groups: dict[str, set[str]] = {}
            for name in find_modules(self._packaged_paths(root), compiled=False).names:
                groups.setdefault(name.partition(".")[0], set()).add(name)
            self._grouped[root] = groups
        return self._grouped[root]

    def _packaged_paths(self, root: str) -> Iterator[str]:
        """Paths relative to `root`. A classic setup.py (find_packages) stops at a folder without `__init__.py` below a
        package, all other backends take it along."""
        prefix = f"{root}/" if root else ""
        paths = [path.removeprefix(prefix) for path in self.members if path.startswith(prefix) and path.endswith(".py")]
        paths = [path for path in paths if len(path) <= MAX_NAME_LENGTH]
        classic = self.is_classic
        packages = {path.removesuffix("/__init__.py") for path in paths if path.endswith("/__init__.py")}
        for path in paths:
            folders = path.split("/")[:-1]
            inside = ["/".join(folders[:end]) in packages for end in range(1, len(folders) + 1)]
            if not classic or inside == sorted(inside):
                yield path

    @property
    def is_classic(self) -> bool:
        return "setup.py" in self.members and not self.table("project") and not self.table("tool", "setuptools")

    def table(self, *keys: str) -> Mapping[str, Any]:
        """A table of pyproject.toml, empty where there is none."""
        value: object = self.pyproject
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, dict) else {}

    @property
    def backend(self) -> str:
        backend = self.table("build-system").get("build-backend")
        return backend if isinstance(backend, str) else "setuptools"


def find_sdist_modules(tree: SourceTree) -> tuple[tuple[str, ...] | None, tuple[str, ...]]:
    """The modules (None where no rule finds any) and notes that name the rule."""
    for name, rule in _RULES:
        modules, notes = rule(tree)
        if modules:
            rule_name = tree.declared_by if rule is _by_declared_names else name
            return tuple(sorted(modules)), (f"modules by: {rule_name}", *notes)
    return None, ("modules: unknown",)


Found = tuple[set[str], tuple[str, ...]]
_NOTHING: Found = (set(), ())


def _by_declared_names(tree: SourceTree) -> Found:
    """The declared names, and all that lies below them. A name without a file is taken for an extension module."""
    found: set[str] = set()
    missing = []
    roots = list(_roots(tree)) if tree.declared else []
    for declared in tree.declared[:MAX_DECLARED]:
        name = declared.replace("/", ".").strip(".")
        if len(name) > MAX_NAME_LENGTH or not all(part.isidentifier() for part in name.split(".")):
            continue
        below = next((modules for root in roots if (modules := _below(tree, root, name))), set())
        if not below:
            missing.append(name)
            below = set(ancestry(name))
        found |= below
    return found, (f"declared without a file: {', '.join(missing)}",) if missing else ()


def _by_backend_settings(tree: SourceTree) -> Found:
    """Packages and modules that pyproject.toml or setup.cfg lists for its build backend."""
    listed = list(islice(_listed(tree), MAX_DECLARED))
    return {module for root, name in listed for module in _below(tree, root, name)}, ()


def _by_project_name(tree: SourceTree) -> Found:
    """The package or module that is named like the project: the default of most build backends but setuptools."""
    if tree.project is None or not tree.backend.startswith(_NAME_BACKENDS):
        return _NOTHING
    name = _module_name(tree.project)
    for root in _SOURCE_FOLDERS:
        for candidate in sorted(tree.modules_by_top(root)):
            if candidate.lower() == name:
                return _below(tree, root, candidate), ()
    return _NOTHING


def _by_src_layout(tree: SourceTree) -> Found:
    """All that lies in the source folder, where there is one."""
    groups = tree.modules_by_top(_package_dir(tree) or "src")
    return {module for modules in groups.values() for module in modules}, ()


def _by_flat_layout(tree: SourceTree) -> Found:
    """Packages at the top, else single modules, else namespaces, without what is only there for development."""
    members = set(tree.members)
    left_out = NOT_INSTALLED - {_module_name(tree.project or "")}
    groups = {top: modules for top, modules in tree.modules_by_top("").items() if top not in left_out}
    packages = [top for top in groups if f"{top}/__init__.py" in members]
    single = [top for top in groups if f"{top}.py" in members]
    return {module for top in packages or single or groups for module in groups[top]}, ()


_RULES: tuple[tuple[str, Callable[[SourceTree], Found]], ...] = (
    ("declared names", _by_declared_names),
    ("build backend's settings", _by_backend_settings),
    ("the project's name", _by_project_name),
    ("src layout", _by_src_layout),
    ("flat layout", _by_flat_layout),
)


def _module_name(project: str) -> str:
    return re.sub(r"[-.]+", "_", project).lower()


def _below(tree: SourceTree, root: str, name: str) -> set[str]:
    """The module `name` under `root` with what lies below it and the packages above it; empty where it is not there."""
    group = tree.modules_by_top(root).get(name.partition(".")[0], set())
    if "." not in name:
        return group
    below = {module for module in group if module == name or module.startswith(f"{name}.")}
    return below and below | set(ancestry(name))


def _roots(tree: SourceTree) -> Iterator[str]:
    """Folders that top-level names may lie in, the likeliest first."""
    known = [_package_dir(tree), tree.egg_info.rpartition("/")[0] if tree.egg_info else None, *_SOURCE_FOLDERS]
    roots = dict.fromkeys(root for root in known if root is not None)
    yield from roots
    others = {member.partition("/")[0] for member in tree.members if "/" in member} - set(roots) - NOT_INSTALLED
    yield from sorted(other for other in others if f"{other}/__init__.py" not in tree.members)[:MAX_OTHER_ROOTS]


def _package_dir(tree: SourceTree) -> str | None:
    """The folder that pyproject.toml or setup.cfg says the packages lie in."""
    options = _setup_cfg(tree)
    candidates = (
        tree.table("tool", "setuptools", "package-dir").get(""),
        *_strings(tree.table("tool", "setuptools", "packages", "find").get("where"))[:1],
        tree.table("tool", "pdm", "build").get("package-dir"),
        tree.table("tool", "uv", "build-backend").get("module-root"),
        *(line.partition("=")[2] for line in options("options", "package_dir") if line.startswith("=")),
        *options("options.packages.find", "where")[:1],
        *options("options.packages.find_namespace", "where")[:1],
    )
    folders = [_folder(candidate) for candidate in candidates if isinstance(candidate, str)]
    return folders[0] if folders else None


def _folder(path: str) -> str:
    return "/".join(part for part in path.strip().split("/") if part not in {"", "."})


def _listed(tree: SourceTree) -> Iterator[tuple[str, str]]:
    """(folder, dotted name) of each package or module that the build backend's settings list."""
    root = _package_dir(tree) or ""
    tool = tree.table("tool")
    packages = tree.table("tool", "poetry").get("packages")
    for package in packages if isinstance(packages, list) else ():
        if isinstance(package, dict) and isinstance(include := package.get("include"), str):
            source = package.get("from")
            yield (_folder(source) if isinstance(source, str) else ""), _dotted(include)
    for flit_name in (
        tree.table("tool", "flit", "module").get("name"),
        tree.table("tool", "flit", "metadata").get("module"),
    ):
        if isinstance(flit_name, str):
            yield from (("", flit_name), ("src", flit_name))
    if "uv" in tool:
        for name in _strings(tree.table("tool", "uv", "build-backend").get("module-name")):
            yield (root or "src"), name
    hatch = tree.table("tool", "hatch", "build", "targets", "wheel")
    for path in _strings(hatch.get("packages")) or _strings(hatch.get("only-include")):
        folder, _, name = _folder(path).rpartition("/")
        yield folder, _dotted(name)
    setuptools = tree.table("tool", "setuptools")
    options = _setup_cfg(tree)
    for name in (
        *_strings(setuptools.get("packages")),
        *_strings(setuptools.get("py-modules")),
        *options("options", "packages"),
        *options("options", "py_modules"),
        *options("files", "packages"),
    ):
        yield root, name


def _dotted(path: str) -> str:
    """`foo/bar/**/*.py` and `foo/bar.py` as `foo.bar`."""
    return _folder(path.partition("*")[0]).removesuffix(".py").replace("/", ".")


def _strings(value: object) -> list[str]:
    """A string or a list of strings, as a list."""
    if isinstance(value, str):
        return [value]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _setup_cfg(tree: SourceTree) -> Callable[[str, str], list[str]]:
    """Looks up the lines (or the comma-separated parts) of an option in setup.cfg."""
    parser = configparser.RawConfigParser(strict=False)
    with suppress(configparser.Error):  # what was read until then counts
        parser.read_string(tree.setup_cfg)

    def lines(section: str, option: str) -> list[str]:
        value = parser.get(section, option, fallback="") or ""
        return [line.replace(" ", "") for line in re.split(r"[\n,]", value) if line.strip()]

    return lines
