"""What setuptools (or distutils, or pbr) installs: declared packages and modules, or those that it discovers.

pyproject.toml comes before setup.py, and that before setup.cfg. Extension modules are those that setup.py or
pyproject.toml name, and what the .egg-info's top_level.txt names without any file.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pypi_assets.characters import is_identifier, lower
from pypi_assets.distributions.globs import matches_glob
from pypi_assets.distributions.members import Files, by_folder, paths_of
from pypi_assets.distributions.path_patterns import Effort, Patterns, matching, matching_paths
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.setup_cfg import listed, mapped
from pypi_assets.distributions.setup_script import FindPackages, SetupArguments
from pypi_assets.distributions.source_tree import MAX_PATH_LENGTH, Installed, SourceTree, clean_path, moved

_EXTENSION = re.compile(
    rb"Extension\(\s*(?:name\s*=\s*|target\s*=\s*)?[\"']([A-Za-z_][\w.]*)[\"']"
    rb"(?:\s*,\s*(?:sources\s*=\s*)?\[\s*[\"']([^\"'\n]*)[\"'])?"
)
"""The name of an extension module, and its first source."""
_CODE = re.compile(
    rb"\"\"\"[^\"\\]*+(?:\"{0,2}+(?:\\.|[^\"\\])[^\"\\]*+)*+\"\"\"|'''[^'\\]*+(?:'{0,2}+(?:\\.|[^'\\])[^'\\]*+)*+'''|\#[^\r\n]*+"
    rb"|([^\"'\#]++|\"[^\"\\\r\n]*+(?:\\.[^\"\\\r\n]*+)*+\"|'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+'|[\"'])",
    re.DOTALL,
)
"""The group is what is neither a comment nor a docstring; in its strings # begins no comment. No (?!...) is in what is
repeated by *+, which would not match before Python 3.11.5."""
_INCLUDE_PACKAGE_DATA = re.compile(rb"include_package_data[\"']?\s*[=:]\s*(?:True|1)")
_PACKAGES_ITEM = re.compile(rb"[\"']packages[\"']\s*+:\s*+\[((?:\s*+[\"'][\w.-]++[\"']\s*+,?+)++\s*+)\]")
_PACKAGES_NAMED = re.compile(rb"\bpackages\s*+(?:=\s*+\[|\+=)|\[\s*+[\"']packages[\"']\s*+\]")
_TEXT = re.compile(rb"[\"']([\w.-]+)[\"']")
_WORDS = (b"packag", b"py_modules", b"ext_modules", b"rust_extensions", b"**", b"pbr", b"configuration")
_PLUGINS = frozenset({"pbr", "configuration"})
"""Arguments by which others than setuptools find the packages."""
_DISCOVERED_IN = ("", "src", "lib", "python")

_NOT_PACKAGES = (
    "ci bin debian doc docs documentation manpages news newsfragments changelog test tests unit_test unit_tests"
    " example examples scripts tools util utils python build benchmark benchmarks exercise exercises htmlcov tasks"
    " fabfile site_scons dist env venv requirements"
)
NOT_PACKAGES = frozenset(_NOT_PACKAGES.split())
"""Folders at the top that setuptools' discovery takes for no packages, next to those that begin with _ or a dot."""
_NOT_MODULES = (
    "setup conftest test tests example examples build toxfile noxfile pavement dodo tasks fabfile SConstruct Sconstruct"
    " sConstruct sconstruct conanfile manage benchmark benchmarks exercise exercises"
)
NOT_MODULES = frozenset(_NOT_MODULES.split())


@dataclass(slots=True)
class _Declared:
    """What the project declares to setuptools. `packages` and `modules` are None where it declares nothing."""

    by: str = ""
    packages: list[str] | None = None
    modules: list[str] | None = None
    package_dir: dict[str, str] = field(default_factory=dict)
    extensions: tuple[str, ...] = ()
    takes_data: bool = False
    data: dict[str, list[str]] = field(default_factory=dict)
    no_data: dict[str, list[str]] = field(default_factory=dict)
    is_computed: bool = False
    is_complete: bool = False

    @property
    def is_declared(self) -> bool:
        return self.packages is not None or self.modules is not None


def installed(tree: SourceTree) -> Installed | None:
    """The declared packages and modules, else what top_level.txt names, else what is discovered."""
    declared = _Declared(takes_data=_takes_data(tree), extensions=_extensions(tree))
    _read_pyproject(tree, declared)
    if not declared.is_declared:
        script = _script(tree)
        _read_script(tree, script, declared)
        _read_setup_cfg(tree, script, declared)
        declared.is_complete = script.is_complete and not script.given & _PLUGINS
        if (
            "ext_modules" in script.given
            and declared.is_complete
            and not (declared.is_declared or tree.table("project"))
        ):
            declared.by, declared.packages = "setup.py ext_modules", []
    if declared.is_declared:
        return _checked(tree, declared, _as_installed(tree, declared))
    is_discovered = tree.table("project") or (declared.is_complete and tree.top_level)
    if tree.top_level is not None and (declared.is_computed or not is_discovered):
        return _by_top_level(tree, declared)
    if declared.is_computed:
        return None
    found = _checked(tree, declared, _discovered(tree, declared))
    return found if found.files or found.extensions or tree.top_level is not None else None


def _takes_data(tree: SourceTree) -> bool:
    """Whether all files in packages are installed, and not the modules alone: `include_package_data`.

    Which files there are, setuptools knows from the .egg-info.
    """
    if tree.egg_info is None:
        return False
    settings = tree.table("tool", "setuptools")
    if "include-package-data" in settings:
        return settings["include-package-data"] is True
    if tree.table("project") or settings:
        return True
    value = tree.setup_cfg.get("options", {}).get("include_package_data", "")
    return lower(value) in {"1", "true", "yes"} or bool(_INCLUDE_PACKAGE_DATA.search(tree.files.get("setup.py", b"")))


def _extensions(tree: SourceTree) -> tuple[str, ...]:
    tool = tree.table("tool")
    source = tree.files.get("setup.py", b"")
    found = _EXTENSION.findall(b"".join(_CODE.findall(source))) if b"Extension(" in source else []
    names = [name.decode() for name, source in found if tree.uses_cython or not source.endswith(b".pyx")]
    for table, array, key in (("setuptools", "ext-modules", "name"), ("setuptools-rust", "ext-modules", "target")):
        entries = tool.get(table, {}).get(array) if isinstance(tool.get(table), dict) else None
        literal = [entry.get(key) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        names += strings(literal)
    return tuple(dict.fromkeys(names))


def _read_pyproject(tree: SourceTree, declared: _Declared) -> None:
    settings = tree.table("tool", "setuptools")
    for package, folder in _text_items(settings.get("package-dir")):
        declared.package_dir[package] = clean_path(folder)
    declared.data = _data_patterns(settings.get("package-data"))
    declared.no_data = {
        package: strings(patterns) for package, patterns in _items(settings.get("exclude-package-data"))
    }
    packages = settings.get("packages")
    if isinstance(packages, list):
        declared.by, declared.packages = "pyproject.toml packages", strings(packages)
    elif isinstance(packages, dict) and isinstance(find := packages.get("find", {}), dict):
        where = [clean_path(folder) for folder in strings(find.get("where"))] or [""]
        include, exclude = strings(find.get("include")) or ["*"], strings(find.get("exclude"))
        is_classic = find.get("namespaces") is False
        declared.by, declared.packages = "pyproject.toml packages.find", []
        for folder in where:
            packages_there = find_packages(tree, folder, include, exclude, namespaces=not is_classic)
            declared.packages += packages_there
            if len(where) > 1 and folder:
                tops = {package.partition(".")[0] for package in packages_there}
                declared.package_dir |= {top: f"{folder}/{top}" for top in tops}
            else:
                declared.package_dir.setdefault("", folder)
    if "py-modules" in settings:
        declared.by = declared.by or "pyproject.toml py-modules"
        declared.modules = strings(settings["py-modules"])


def _data_patterns(value: object) -> dict[str, list[str]]:
    """The globs of package_data that may name modules."""
    found = {
        package: [each for each in strings(globs) if each.endswith((".py", "*"))] for package, globs in _items(value)
    }
    return {package: globs for package, globs in found.items() if globs}


def _script(tree: SourceTree) -> SetupArguments:
    """What setup.py gives; it isn't read where it calls setup() and names nothing of what is looked for."""
    source = tree.files.get("setup.py", b"")
    if b"setup(" in source and not any(word in source for word in _WORDS):
        return SetupArguments(is_complete=True)
    return tree.read_setup_script() or SetupArguments(is_complete="setup.cfg" in tree.files)


def _read_setup_cfg(tree: SourceTree, script: SetupArguments, declared: _Declared) -> None:
    """What setup.cfg declares, where setup.py doesn't give the same, or gives an empty list."""
    options = tree.setup_cfg.get("options", {})
    if "package_dir" not in script.given and not tree.table("tool", "setuptools", "package-dir"):
        declared.package_dir |= {
            key: clean_path(value) for key, value in mapped(options.get("package_dir", "")).items()
        }
    if not declared.data and "package_data" not in script.given:
        globs = {package: listed(value) for package, value in tree.setup_cfg.get("options.package_data", {}).items()}
        declared.data = _data_patterns(globs)
    modules = listed(options.get("py_modules", "")) or listed(tree.setup_cfg.get("files", {}).get("modules", ""))
    if modules and ("py_modules" not in script.given or script.py_modules == ()):
        declared.by = declared.by or "setup.cfg py_modules"
        declared.modules = modules
    if "packages" in script.given and script.packages != ():
        declared.modules = None if script.packages is None else declared.modules  # a part is not enough
        return
    packages = options.get("packages", "").strip()
    if packages.startswith(("find:", "find_namespace:")):
        find = tree.setup_cfg.get("options.packages.find", {})
        declared.by = f"setup.cfg packages = {packages.partition(':')[0]}:"
        folder = clean_path(find.get("where", ""))
        include, exclude = listed(find.get("include", "")) or ["*"], listed(find.get("exclude", ""))
        namespaces = packages.startswith("find_n")
        declared.packages = find_packages(tree, folder, include, exclude, namespaces=namespaces)
        declared.package_dir.setdefault("", folder)
    elif packages:
        declared.by, declared.packages = "setup.cfg packages", listed(packages)
    elif files := listed(tree.setup_cfg.get("files", {}).get("packages", "")):  # pbr takes what is below them too
        root = clean_path(tree.setup_cfg["files"].get("packages_root", ""))
        declared.package_dir.setdefault("", root)
        include = [pattern for package in files for pattern in (package, f"{package}.*")]
        declared.by = "setup.cfg [files] packages"
        declared.packages = find_packages(tree, declared.package_dir[""], include, [], namespaces=False)


def _read_script(tree: SourceTree, script: SetupArguments, declared: _Declared) -> None:
    declared.data = declared.data or _data_patterns(
        {key: [*globs] for key, globs in (script.package_data or {}).items()}
    )
    for package, folder in (script.package_dir or {}).items():
        declared.package_dir.setdefault(package, clean_path(folder))
    if script.packages is not None:
        declared.by, declared.packages = "setup.py packages", []
        for item in script.packages:
            if isinstance(item, FindPackages):
                declared.by = "setup.py find_packages"
                folder = clean_path(item.where)
                declared.packages += find_packages(tree, folder, item.include, item.exclude, namespaces=item.namespaces)
                declared.package_dir.setdefault("", folder)
            else:
                declared.packages.append(item)
    if script.py_modules is not None:
        declared.by = declared.by or "setup.py py_modules"
        declared.modules = list(script.py_modules)
    if script.ext_modules is not None:
        absent = frozenset() if tree.uses_cython else script.cython_modules
        named = [name for name in script.ext_modules if name not in absent]
        declared.extensions = tuple(dict.fromkeys((*named, *_cythonized(tree, script))))
    if not script.is_complete and tree.egg_info is not None:  # it lies where the packages are
        declared.package_dir.setdefault("", tree.egg_info.rpartition("/")[0])
    source = tree.files.get("setup.py", b"")
    is_mentioned = any(word in source for word in (b"packages", b"py_modules", b"**"))
    declared.is_computed = bool({"packages", "py_modules"} & script.given) or (is_mentioned and not script.is_complete)
    if declared.is_computed and "packages" not in script.given and (packages := _only_list(tree)):
        declared.by, declared.packages = "list of packages in setup.py", packages


def _only_list(tree: SourceTree) -> list[str]:
    """The only list of packages, where it is an item of a dict that is handed on by ** in ways that aren't followed.

    A list that is an argument or has a name is not taken: the script may change it before it is used.
    """
    source = tree.files["setup.py"]
    lists = _PACKAGES_ITEM.findall(source)
    is_whole = len(lists) == 1 and not _PACKAGES_NAMED.search(source)
    return [name.decode() for name in _TEXT.findall(lists[0])] if is_whole else []


def _cythonized(tree: SourceTree, script: SetupArguments) -> list[str]:
    """The modules that cythonize() makes of files in no package; those in packages are found there."""
    sources = [path for path in paths_of(tree.below("")) if path.endswith(".pyx")] if script.cython_sources else []
    found = matching_paths(sources, map(clean_path, script.cython_sources), Patterns.GLOB, tree.effort)
    return [path.removesuffix(".pyx") for path in found if "/" not in path]


def find_packages(
    tree: SourceTree, where: str, include: Iterable[str], exclude: Iterable[str], *, namespaces: bool
) -> list[str]:
    """The dotted names of the folders below `where` that are packages: with `__init__.py` in them and in all folders
    between, or any where `namespaces`."""
    start = f"{where}/" if where else ""
    cut = len(start)
    candidates = tree.sources if namespaces else tree.packages
    tree.effort.spend(4 * len(candidates))
    folders = sorted([folder for folder in candidates if folder.startswith(start) and folder != where])
    if not namespaces:
        accepted = {where}
        for folder in folders:
            if folder.rpartition("/")[0] in accepted:
                accepted.add(folder)
        folders = [folder for folder in folders if folder in accepted]
    names = [folder[cut:].replace("/", ".") for folder in folders if "." not in folder[cut:]]
    included = _named_by(include, names, tree.effort)
    excluded = frozenset(_named_by(exclude, included, tree.effort))
    return [name for name in included if name not in excluded]


def _named_by(patterns: Iterable[str], names: list[str], effort: Effort) -> list[str]:
    """Those of the dotted `names` that `patterns` match, most of which are a name with a star at one end."""
    exact: set[str] = set()
    starts: list[str] = []
    ends: list[str] = []
    others: list[str] = []
    for pattern in patterns:
        bare = pattern.strip("*")
        if set(bare) & set("*?["):
            others.append(pattern)
        elif pattern == bare:
            exact.add(pattern)
        elif not bare:
            return names
        elif pattern == f"{bare}*":
            starts.append(bare)
        elif pattern == f"*{bare}":
            ends.append(bare)
        else:
            others.append(pattern)
    first, last = tuple(starts), tuple(ends)
    named = [name for name in names if name in exact or name.startswith(first) or name.endswith(last)]
    if others:
        effort.spend(len(others) * sum([1 + len(name) // 64 for name in names]))
        plainly = frozenset(named)
        named = [name for name in names if name in plainly or any(matches_glob(name, each) for each in others)]
    return named


def _folder_of(package: str, package_dir: Mapping[str, str]) -> str:
    """Where the package's modules lie: package_dir may name a folder for it, or for a package above."""
    if not package_dir or (len(package_dir) == 1 and "" in package_dir):
        folder, path = package_dir.get(""), package.replace(".", "/")
        return f"{folder}/{path}" if folder and path else folder or path
    parent, below = package, ""
    while parent:
        if parent in package_dir:
            return f"{package_dir[parent]}{below}".lstrip("/")
        parent, _, last = parent.rpartition(".")
        below = f"/{last}{below}"
    return f"{package_dir.get('', '')}{below}".lstrip("/")


def _as_installed(tree: SourceTree, declared: _Declared) -> Installed:
    files: Files = []
    folders: dict[str, str] = {}
    for package in declared.packages or ():
        if len(package) <= MAX_PATH_LENGTH:
            folder = _folder_of(package, declared.package_dir)
            if len(folder) <= MAX_PATH_LENGTH:
                folders[folder] = package
    if declared.takes_data:
        for folder, package in folders.items():
            if folder.rpartition("/")[0] not in folders:  # else it comes along with the package above
                found = _without_excluded(folders, declared.no_data, tree.below(folder), tree.effort)
                files += moved(found, folder, package.replace(".", "/"))
    else:
        for folder, inside in tree.right_in(folders):
            files += moved([(folder, inside)], folder, folders[folder].replace(".", "/"))
    for folder, package in folders.items() if declared.data else ():
        globs = [glob for key in ("*", "", package) for glob in declared.data.get(key, ())]
        below = moved(tree.below(folder), folder) if globs else []
        files += moved(matching(below, globs, Patterns.FILE_GLOB, tree.effort), "", package.replace(".", "/"))
    for module in declared.modules or ():
        if len(module) > MAX_PATH_LENGTH:
            continue
        parent, _, last = module.rpartition(".")
        folder = _folder_of(parent, declared.package_dir)
        if tree.has_file(path := f"{folder}/{last}.py".lstrip("/")):
            files += moved(by_folder([path]), folder, parent.replace(".", "/"))
    return Installed(declared.by, files, declared.extensions)


def _without_excluded(
    folders: Mapping[str, str], patterns: Mapping[str, list[str]], files: Files, effort: Effort
) -> Files:
    """`files` without the data files that exclude_package_data names; the modules of packages are no data."""
    if not patterns:
        return files
    kept: Files = []
    for folder, inside in files:
        if folder in folders:
            kept.append((folder, inside))
            continue
        package = folder
        while package and package not in folders:
            package = package.rpartition("/")[0]
        excluding = (*patterns.get("*", ()), *patterns.get("", ()), *patterns.get(folders.get(package, ""), ()))
        paths = []
        for path in paths_of([(folder[len(package) + 1 :], inside)]):
            effort.spend(len(excluding) * (1 + len(path) // 64))
            if not any(matches_glob(path, pattern) for pattern in excluding):
                paths.append(path)
        kept += moved(by_folder(paths), "", package)
    return kept


def _discovered(tree: SourceTree, declared: _Declared) -> Installed:
    """What setuptools takes where nothing is declared: the src layout, else packages at the top, else one module."""
    named = {package: folder for package, folder in declared.package_dir.items() if package}
    source = declared.package_dir.get("", "src")
    if named:
        files = [each for package, folder in named.items() for each in moved(tree.below(folder), folder, package)]
        return Installed("setuptools package-dir", files, declared.extensions)
    if source and tree.has_folder(source):
        found = tree.uncompiled(tree.below(source))
        return Installed("setuptools src layout", moved(found, source), declared.extensions)
    tops = [
        top
        for top in tree.tops
        if top not in NOT_PACKAGES and is_identifier(top.removesuffix("-stubs")) and top[0] != "_"
    ]
    if tops:
        files = [each for top in tops for each in tree.below(top)]
        return Installed("setuptools flat layout", files, declared.extensions)
    modules = [name for name in tree.modules_at_top if name[:1] not in {"", ".", "_"} and name not in NOT_MODULES]
    return Installed("setuptools single module", by_folder(f"{name}.py" for name in modules), declared.extensions)


def _checked(tree: SourceTree, declared: _Declared, found: Installed) -> Installed:
    """`found`, without what top_level.txt doesn't name, and with what only it names."""
    if tree.top_level is None:
        return found
    named = {name.replace("/", ".").partition(".")[0] for name in tree.top_level}
    at_top = paths_of((folder, inside) for folder, inside in found.files if not folder)
    in_folders = {folder.partition("/")[0] for folder, _ in found.files if folder}
    tops = {top: top.partition(".")[0] for top in (*at_top, *in_folders)}
    kept = {top for top, name in tops.items() if top in named or name in named}
    files = found.files
    if len(kept) < len(tops):
        files = [each for each in files if each[0].partition("/")[0] in kept]
        files += by_folder(path for path in at_top if path in kept)
    extensions = tuple(name for name in found.extensions if name.partition(".")[0] in named)
    present = {name.partition(".")[0] for name in extensions} | set(tops.values())
    if missing := sorted(named - present):
        more = _by_top_level(tree, declared, missing)
        files, extensions = [*files, *more.files], (*extensions, *more.extensions)
    return Installed(found.by, files, extensions)


def _roots(tree: SourceTree, declared: _Declared) -> list[str]:
    """Folders that top-level names may lie in, the likeliest first: the .egg-info lies next to the packages."""
    next_to_egg_info = [tree.egg_info.rpartition("/")[0]] if tree.egg_info else []
    return list(dict.fromkeys([*filter(None, [declared.package_dir.get("")]), *next_to_egg_info, *_DISCOVERED_IN]))


def _by_top_level(tree: SourceTree, declared: _Declared, names: Iterable[str] | None = None) -> Installed:
    """What lies under the names in top_level.txt. One without a file is an extension module, if anything is compiled.

    Below packages, folders without `__init__.py` are left out, as find_packages does.
    """
    files: Files = []
    extensions = list(declared.extensions) if names is None else []
    for name in tree.top_level or () if names is None else names:
        name = name.replace("/", ".").strip(".")
        if name in declared.package_dir:
            found, root, target = tree.below(declared.package_dir[name]), declared.package_dir[name], name
        else:
            root, found = _named_in(tree, _roots(tree, declared), name)
            target = ""
        if found:
            files += moved(found if declared.takes_data else _in_packages(tree, root, found), root, target)
        elif tree.has_compiled_sources and name not in {each.partition(".")[0] for each in extensions}:
            extensions.append(name)
    return Installed("top_level.txt", files, tuple(extensions))


def _named_in(tree: SourceTree, roots: list[str], name: str) -> tuple[str, Files]:
    """The folder that `name` lies in, and its files: one of `roots`, else any at the top."""
    path = name.replace(".", "/")
    for root in (*roots, *tree.tops):
        tree.effort.spend(4)
        start = f"{root}/{path}" if root else path
        if tree.has_file(f"{start}.py"):
            return root, [*by_folder([f"{start}.py"]), *(tree.below(start) if start in tree.packages else ())]
        if found := tree.below(start):
            return root, found
    return "", []


def _in_packages(tree: SourceTree, root: str, files: Files) -> Files:
    """`files` without those in folders that have no `__init__.py` but are below a folder that has one."""
    known: dict[str, bool] = {root: True}

    def is_kept(folder: str) -> bool:
        if folder not in known:
            parent = folder.rpartition("/")[0]
            known[folder] = is_kept(parent) and (
                folder in tree.packages or parent not in tree.packages or parent == root
            )
        return known[folder]

    return [(folder, inside) for folder, inside in files if is_kept(folder)]


def _items(value: object) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _text_items(value: object) -> list[tuple[str, str]]:
    return [(key, text) for key, text in _items(value) if isinstance(text, str)]
