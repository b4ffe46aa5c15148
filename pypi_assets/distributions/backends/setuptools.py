"""Work out what setuptools, distutils or pbr installs: declared packages and modules, or discovered ones.

pyproject.toml has priority over setup.py, and setup.py over setup.cfg. Extension modules are those that setup.py or
pyproject.toml name, and names in top_level.txt of the .egg-info that belong to no file.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pypi_assets.characters import is_identifier, lower
from pypi_assets.distributions.backends.cmake import cmake_modules
from pypi_assets.distributions.backends.manifest_in import MODULE_SUFFIXES, manifest_files
from pypi_assets.distributions.backends.setuptools_commands import (
    BuildFolders,
    build_folders,
    built_modules,
    left_in_wheel,
    left_over,
)
from pypi_assets.distributions.backends.setuptools_files import (
    NOT_MODULES,
    NOT_PACKAGES,
    configured_extensions,
    copied_files,
    cythonized,
    find_packages,
    has_generated_source,
    has_own_build_code,
    in_packages,
    is_namespace,
    literal_extensions,
    named_in,
    package_at_top,
    pyproject_extensions,
    without_scripts,
)
from pypi_assets.distributions.members import Files, Folder, by_folder, paths_of
from pypi_assets.distributions.path_patterns import Effort, Patterns, matches_glob, matching
from pypi_assets.distributions.pyproject import items, strings, text_items
from pypi_assets.distributions.record import ModulesGrade
from pypi_assets.distributions.setup_cfg import listed, mapped
from pypi_assets.distributions.setup_script import FindPackages, SetupArguments
from pypi_assets.distributions.source_tree import (
    MAX_PATH_LENGTH,
    Installed,
    SourceTree,
    clean_path,
    joined,
    least_sure,
    moved,
)

_INCLUDE_PACKAGE_DATA = re.compile(rb"include_package_data[\"']?\s*+[=:]\s*+(?:(True|1)|False|0|None)\b")
_PACKAGES_ITEM = re.compile(rb"[\"']packages[\"']\s*+:\s*+\[((?:\s*+[\"'][\w.-]++[\"']\s*+,?+)++\s*+)\]")
_PACKAGES_NAMED = re.compile(rb"\bpackages\s*+(?:=\s*+\[|\+=)|\[\s*+[\"']packages[\"']\s*+\]")
_TEXT = re.compile(rb"[\"']([\w.-]++)[\"']")
_WORDS = (b"packag", b"_modules", b"rust_extensions", b"**", b"pbr", b"configuration")
_PLUGINS = frozenset({"pbr", "configuration"})
"""Arguments by which tools other than setuptools find the packages."""
_PLAIN_COMMANDS_TEXT = (
    "test sdist upload clean bdist_wheel bdist_egg bdist_rpm bdist_wininst build_ext build_docs build_sphinx docs doc"
    " develop register lint flake8 pytest coverage release publish tag tox nosetests compile_catalog extract_messages"
    " init_catalog update_catalog upload_docs check"
)
_PLAIN_COMMANDS = frozenset(_PLAIN_COMMANDS_TEXT.split())
"""Commands that a project may define itself without changing which modules are installed."""
_OWN_CODE_TEXT = (
    "distclass cffi_modules configuration ext_package use_2to3 convert_2to3_doctests options command_options"
    " script_args script_name command_packages src_root extra_path"
)
_OWN_CODE = frozenset(_OWN_CODE_TEXT.split())
"""Arguments that add modules or their names from elsewhere, or that change what commands do."""
_PLACING = frozenset({"install", "install_lib"})
"""Commands that may install files which no argument names."""
_NAMED_BY = frozenset({"packages", "py_modules"})
_READ = ("packages", "py_modules", "package_dir", "package_data", "ext_modules")
"""Arguments that make the result uncertain if they are given but their value is unknown."""
MAX_PREFIX_LENGTH = 250
"""The maximum length of a prefix of found packages. Without it, many packages could take unlimited memory."""
_DISCOVERED_IN = ("", "src", "lib", "python")


@dataclass(slots=True)
class _Declared:
    """The declarations of a project to setuptools.

    `packages` and `modules` are None if the project declares none. `has_packages` is True if pyproject.toml declares
    packages. `names_extensions` is True if setup.py was understood down to the names of its extension modules.
    """

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
    has_packages: bool = False
    compiles_all: bool = False
    names_extensions: bool = False
    grade: ModulesGrade = ModulesGrade.EXACT
    ext_package: str = ""

    @property
    def is_declared(self) -> bool:
        return self.packages is not None or self.modules is not None

    def doubt(self, grade: ModulesGrade) -> None:
        self.grade = least_sure(self.grade, grade)

    def installed(self, by: str, files: Files, extensions: Iterable[str]) -> Installed:
        return Installed(by, files, tuple(extensions), self.grade, self.compiles_all)


def installed(tree: SourceTree) -> Installed | None:
    """Return the declared or discovered modules, with folders that commands copy or an earlier build left."""
    result = _installed(tree)
    if result:
        result = _as_commands_install(tree, result)
    if result and (copied := copied_files(tree, _script(tree))):
        result = replace(result, files=[*result.files, *copied], grade=least_sure(result.grade, ModulesGrade.DERIVED))
    return result


def _as_commands_install(tree: SourceTree, found: Installed) -> Installed:
    """Return `found` with the files of an earlier build, or with the folders that options install instead."""
    folders = build_folders(tree)
    if not folders.are_followed:
        found = replace(found, grade=ModulesGrade.GUESSED)
    if not found.files and not found.extensions:
        return found
    built = _built(tree, found, folders)
    if folders.target is None:
        built = replace(built, files=[], extensions=())
    elif folders.target:
        extensions = tuple(f"{folders.target.replace('/', '.')}.{name}" for name in built.extensions)
        built = replace(built, files=moved(built.files, "", folders.target), extensions=extensions)
    if not (more := left_in_wheel(tree, folders)):
        return built
    return replace(built, files=[*built.files, *more], grade=least_sure(built.grade, ModulesGrade.DERIVED))


def _built(tree: SourceTree, found: Installed, folders: BuildFolders) -> Installed:
    """Return `found` as it will lie in the folder that is installed."""
    script = _script(tree)
    is_unread = "setup.py" in tree.files and script.ext_modules is None
    is_unread = is_unread and ("ext_modules" in script.given or not script.is_complete)
    is_pure = not found.extensions and not is_unread
    more, are_certain = left_over(tree, folders, is_pure=is_pure, may_be_pure=not found.extensions)
    if folders.are_skipped:
        found = replace(found, files=[], extensions=(), compiles_all=False)
    elif folders.modules is not None:
        files, are_built = built_modules(found.files, folders, is_pure=is_pure)
        is_sure = are_built and is_pure == (not found.extensions)
        found = replace(found, files=files, grade=found.grade if is_sure else ModulesGrade.GUESSED)
    if folders.installed is not None and folders.installed != (folders.pure if is_pure else folders.platform):
        files = moved(tree.below(folders.installed), folders.installed)
        built = found.files if folders.modules is not None else []  # empty if the build is skipped
        return replace(found, files=[*built, *files], extensions=(), compiles_all=False)
    grade = found.grade if are_certain else least_sure(found.grade, ModulesGrade.DERIVED)
    return replace(found, files=[*found.files, *more], grade=grade) if more else found


def _installed(tree: SourceTree) -> Installed | None:
    """Return the declared packages and modules, or else the names in top_level.txt, or else discovered modules.

    Packages and modules are each taken from pyproject.toml, or else from setup.py, or else from setup.cfg.
    """
    declared = _Declared(takes_data=_takes_data(tree), extensions=literal_extensions(tree))
    script = _script(tree)
    _read_pyproject(tree, declared)
    _read_script(tree, script, declared)
    _read_setup_cfg(tree, script, declared)
    declared.is_complete = script.is_complete and not script.given & _PLUGINS
    has_others = declared.is_declared or tree.table("project") or not script.given.isdisjoint(_NAMED_BY)
    if "ext_modules" in script.given and declared.is_complete and not has_others:
        declared.by, declared.packages = "setup.py ext_modules", []
    _read_extensions(tree, script, declared)
    declared.doubt(_script_grade(tree, script))
    if declared.is_declared:
        return _checked(tree, declared, _as_installed(tree, declared))
    if not tree.table("project"):
        # nothing is declared, and setuptools discovers modules only since version 61
        is_unread = "setup.py" in tree.files and not declared.is_complete
        declared.doubt(ModulesGrade.GUESSED if is_unread else ModulesGrade.DERIVED)
    is_discovered = tree.table("project") or (declared.is_complete and tree.top_level)
    if tree.top_level is not None and (declared.is_computed or not is_discovered):
        declared.doubt(declared.grade if _PLACING.isdisjoint(script.commands or ()) else ModulesGrade.GUESSED)
        return _by_top_level(tree, declared)
    if declared.is_computed:
        return None
    discovered = _checked(tree, declared, _discovered(tree, declared))
    return discovered if discovered.files or discovered.extensions or tree.top_level is not None else None


def _takes_data(tree: SourceTree) -> bool:
    """Check whether `include_package_data` is on. Then files in packages that the manifest names are installed, too."""
    settings = tree.table("tool", "setuptools")
    if "include-package-data" in settings:
        return settings["include-package-data"] is True
    if tree.table("project") or settings or "files" in tree.setup_cfg:  # pbr includes them, too
        return True
    value = tree.setup_cfg.get("options", {}).get("include_package_data", "")
    return lower(value) in {"1", "true", "yes", "on", "y", "t"} or _says_data(tree) is not False


def _says_data(tree: SourceTree) -> bool | None:
    """Return the `include_package_data` that setup.py gives, or None if it is computed."""
    source = tree.files.get("setup.py", b"")
    written = [bool(match[1]) for match in _INCLUDE_PACKAGE_DATA.finditer(source)]
    if len(set(written)) == 1 and len(written) == source.count(b"include_package_data"):
        return written[0]
    return None if b"include_package_data" in source else False


def _read_pyproject(tree: SourceTree, declared: _Declared) -> None:
    settings = tree.table("tool", "setuptools")
    for package, folder in text_items(settings.get("package-dir")):
        declared.package_dir[package] = clean_path(folder)
    declared.data = _data_patterns(settings.get("package-data"))
    declared.no_data = {package: strings(patterns) for package, patterns in items(settings.get("exclude-package-data"))}
    packages = settings.get("packages")
    if isinstance(packages, list):
        declared.by, declared.packages, declared.has_packages = "pyproject.toml packages", strings(packages), True
    elif isinstance(packages, dict) and isinstance(find := packages.get("find", {}), dict):
        where = [clean_path(folder) for folder in strings(find.get("where"))] or [""]
        include, exclude = strings(find.get("include")) or ["*"], strings(find.get("exclude"))
        is_classic = find.get("namespaces") is False
        declared.by, declared.packages, declared.has_packages = "pyproject.toml packages.find", [], True
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
    """Return the globs of package_data that may match modules."""
    patterns = {
        package: [each for each in strings(globs) if each.endswith((".py", ".pyc", "*"))]
        for package, globs in items(value)
    }
    return {package: globs for package, globs in patterns.items() if globs}


def _script(tree: SourceTree) -> SetupArguments:
    """Return the arguments of setup.py.

    The script is not evaluated if it calls setup() and contains none of the words that matter.
    """
    source = tree.files.get("setup.py", b"")
    if b"setup(" in source and not any(word in source for word in _WORDS):
        return SetupArguments(is_complete=True)
    return tree.read_setup_script() or SetupArguments(is_complete="setup.cfg" in tree.files)


def _read_setup_cfg(tree: SourceTree, script: SetupArguments, declared: _Declared) -> None:
    """Add the declarations of setup.cfg that setup.py does not give, or gives as an empty list."""
    options = tree.setup_cfg.get("options", {})
    if "package_dir" not in script.given and not tree.table("tool", "setuptools", "package-dir"):
        declared.package_dir |= {
            key: clean_path(value) for key, value in mapped(options.get("package_dir", "")).items()
        }
    if not declared.data and "package_data" not in script.given:
        globs = {package: listed(value) for package, value in tree.setup_cfg.get("options.package_data", {}).items()}
        declared.data = _data_patterns(globs)
    if not declared.no_data:
        excluded = tree.setup_cfg.get("options.exclude_package_data", {})
        declared.no_data = {package: listed(value) for package, value in excluded.items()}
    if "exclude_package_data" in script.given:
        declared.doubt(ModulesGrade.DERIVED)
    modules = listed(options.get("py_modules", "")) or listed(tree.setup_cfg.get("files", {}).get("modules", ""))
    if modules and declared.modules is None and ("py_modules" not in script.given or script.py_modules == ()):
        declared.by = declared.by or "setup.cfg py_modules"
        declared.modules = modules
    if declared.has_packages:
        return
    if "packages" in script.given and script.packages != ():
        if script.packages is None and tree.top_level is not None:  # a partial list is not enough
            declared.modules = None
        declared.doubt(ModulesGrade.GUESSED if script.packages is None and declared.is_declared else declared.grade)
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
    elif files := listed(tree.setup_cfg.get("files", {}).get("packages", "")):  # pbr includes subpackages, too
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
    if declared.packages is None and script.packages is not None:
        is_guess = any(isinstance(item, FindPackages) and item.is_guess for item in script.packages)
        by, packages = _script_packages(tree, script.packages, declared)
        if not is_guess or (packages and tree.top_level is None):
            declared.by, declared.packages = by, packages
    if declared.modules is None and script.py_modules is not None:
        declared.by = declared.by or "setup.py py_modules"
        declared.modules = list(script.py_modules)
    if declared.has_packages:
        return
    if not script.is_complete and tree.egg_info is not None:  # the .egg-info lies next to the packages
        declared.package_dir.setdefault("", tree.egg_info.rpartition("/")[0])
    source = tree.files.get("setup.py", b"")
    is_mentioned = any(word in source for word in (b"packages", b"py_modules", b"**"))
    declared.is_computed = not script.given.isdisjoint(_NAMED_BY) or (is_mentioned and not script.is_complete)
    if declared.is_computed and "packages" not in script.given and (packages := _only_list(tree)):
        declared.by, declared.packages = "list of packages in setup.py", packages
        declared.doubt(ModulesGrade.DERIVED)


def _script_packages(
    tree: SourceTree, items: Iterable[str | FindPackages], declared: _Declared
) -> tuple[str, list[str]]:
    """Return the name of the rule that applies and the packages of setup.py.

    The folder of find_packages() is the packages' folder unless the project declares another one.
    """
    by = "setup.py packages"
    packages: list[str] = []
    for item in items:
        if isinstance(item, FindPackages):
            by, folder = "setup.py find_packages", clean_path(item.where)
            names = find_packages(tree, folder, item.include, item.exclude, namespaces=item.namespaces)
            packages += [item.prefix + package for package in names if len(item.prefix) <= MAX_PREFIX_LENGTH]
            if not item.prefix:
                declared.package_dir.setdefault("", folder)
        else:
            packages.append(item.replace("/", "."))
    return by, packages


def _read_extensions(tree: SourceTree, script: SetupArguments, declared: _Declared) -> None:
    """Add the extension modules that setup.py names, and those that Cython builds from its files and patterns.

    If setup.py does not name all of them, each .pyx in a package counts as one.
    """
    if script.ext_package:  # top_level.txt does not name this package
        declared.ext_package = f"{script.ext_package}."
    if script.ext_modules is not None:
        absent = frozenset() if tree.uses_cython else script.cython_modules
        named = [name for name in script.ext_modules if name not in absent or has_generated_source(tree, name)]
        literal = declared.extensions if "ext_modules" in script.partial else pyproject_extensions(tree)
        declared.extensions = tuple(dict.fromkeys((*named, *cythonized(tree, script), *literal)))
    if b"skbuild" in tree.files.get("setup.py", b"") and (built := _built_by_cmake(tree, declared)):
        declared.extensions = tuple(dict.fromkeys((*declared.extensions, *built)))
        declared.doubt(ModulesGrade.DERIVED)
    if b"numpy.distutils" in tree.files.get("setup.py", b""):
        configured = configured_extensions(tree, declared.package_dir.get("", ""))
        declared.extensions = tuple(dict.fromkeys((*declared.extensions, *configured)))
        declared.doubt(ModulesGrade.DERIVED)
    is_unread = script.ext_modules is None and ("ext_modules" in script.given or not script.is_complete)
    declared.names_extensions = script.ext_modules is not None
    declared.compiles_all = is_unread or "ext_modules" in script.partial or tree.has_own_backend


def _built_by_cmake(tree: SourceTree, declared: _Declared) -> list[str]:
    """Return the modules that CMake installs for scikit-build (classic).

    Their names may contain the folder of the packages, which is removed.
    """
    source = declared.package_dir.get("", "").replace("/", ".")
    return [name.removeprefix(f"{source}.") for name in cmake_modules(tree, None, {"SKBUILD": "1"}).extensions]


def _script_grade(tree: SourceTree, script: SetupArguments) -> ModulesGrade:
    """Return DERIVED if setup.py may install other files than its arguments name, or if it was not fully understood."""
    if has_own_build_code(tree) or "cmdclass" in tree.setup_cfg.get("options", {}):
        return ModulesGrade.DERIVED
    if "setup.py" not in tree.files:
        return ModulesGrade.EXACT
    is_followed = script.is_complete and script.problem is None and not (script.uncertain or script.partial)
    has_unread = any(name in script.given and getattr(script, name) is None for name in _READ)
    own = script.commands is None or not _PLAIN_COMMANDS.issuperset(script.commands)
    own_code = script.given & _OWN_CODE - ({"options", "extra_path"} if script.options is not None else set())
    if is_followed and not has_unread and not own and not own_code:
        return ModulesGrade.EXACT
    return ModulesGrade.DERIVED


def _only_list(tree: SourceTree) -> list[str]:
    """Return the list of packages in setup.py, if there is only one and it is an item of a dict.

    Such a dict is passed by `**` in a way that is not understood. A list that is an argument or has a name is ignored
    because the script may change it before it is used.
    """
    source = tree.files["setup.py"]
    lists = _PACKAGES_ITEM.findall(source)
    is_whole = len(lists) == 1 and not _PACKAGES_NAMED.search(source)
    return [name.decode() for name in _TEXT.findall(lists[0])] if is_whole else []


def _folder_of(package: str, package_dir: Mapping[str, str]) -> str:
    """Return the folder of a package's modules. package_dir may name one for the package or for one of its parents."""
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
    missing = 0
    for package in declared.packages or ():
        if len(package) <= MAX_PATH_LENGTH:
            folder = _folder_of(package, declared.package_dir)
            if len(folder) <= MAX_PATH_LENGTH:
                folders[folder] = package
                missing += folder not in tree.sources
    if declared.takes_data:
        unlisted = _unlisted_data(tree, folders, declared)
        files += _listed_bytecode(tree, folders, declared)
        for folder, package in folders.items():
            if folder.rpartition("/")[0] not in folders:  # otherwise it is included with its parent package
                below = _without_excluded(folders, declared.no_data, tree.below(folder), tree.effort)
                if unlisted:
                    below = by_folder(path for path in paths_of(below) if path not in unlisted)
                files += moved(below, folder, package.replace(".", "/"))
    else:
        for folder, inside in tree.right_in(folders):
            files += moved([(folder, inside)], folder, folders[folder].replace(".", "/"))
    for folder, package in folders.items() if declared.data else ():
        globs = [glob for key in ("*", "", package) for glob in declared.data.get(key, ())]
        files += _package_data(tree, folder, package.replace(".", "/"), globs)
        if any("/../" in glob.lstrip("./") for glob in globs):
            declared.doubt(ModulesGrade.DERIVED)
    for module in declared.modules or ():
        if len(module) > MAX_PATH_LENGTH:
            continue
        parent, _, last = module.rpartition(".")
        folder = _folder_of(parent, declared.package_dir)
        if tree.has_file(path := f"{folder}/{last}.py".lstrip("/")):
            files += moved(by_folder([path]), folder, parent.replace(".", "/"))
        else:
            missing += 1
    if folders.get(""):  # build_py skips the script itself
        script = f"{folders[''].replace('.', '/')}/setup.py"
        files = by_folder(path for path in paths_of(files) if path != script)
    if missing:  # a build may create them
        declared.doubt(ModulesGrade.GUESSED if not files else ModulesGrade.DERIVED)
    return declared.installed(declared.by, files, declared.extensions)


def _package_data(tree: SourceTree, folder: str, target: str, globs: list[str]) -> Files:
    """Return the modules that package_data names in `folder`, or above it by `../`, at their installed paths."""
    by_start: dict[tuple[str, str], list[str]] = {}
    for glob in globs:
        start, end, rest = folder, target, glob
        while rest.startswith("../") and start and end:
            start, end, rest = start.rpartition("/")[0], end.rpartition("/")[0], rest[3:].lstrip("/")
        if not rest.startswith("../"):  # otherwise it is outside of the sdist or of site-packages
            by_start.setdefault((start, end), []).append(rest)
    files: Files = []
    for (start, end), patterns in by_start.items():
        below = moved([*tree.below(start), *tree.bytecode(start)], start)
        files += moved(matching(below, patterns, Patterns.FILE_GLOB, tree.effort), "", end)
    return files


def _unlisted_data(tree: SourceTree, folders: Collection[str], declared: _Declared) -> set[str]:
    """Return the modules below the packages that are not modules of these packages and that no manifest names."""
    roots = [folder for folder in folders if folder.rpartition("/")[0] not in folders]
    data = [
        path
        for root in roots
        for folder, inside in tree.below(root)
        for path in paths_of([(folder, inside if folder not in folders else Folder("", inside.others))])
        if path.endswith(MODULE_SUFFIXES)
    ]
    if not data:
        return set()
    listed, are_read = manifest_files(tree, data)
    if not are_read or (listed and _says_data(tree) is None):
        declared.doubt(ModulesGrade.DERIVED)
    return {*data} - listed


def _listed_bytecode(tree: SourceTree, folders: Mapping[str, str], declared: _Declared) -> Files:
    """Return the `.pyc` files below packages that the manifest names, at their installed paths. They count as data."""
    paths = paths_of(tree.bytecode(""))
    listed = manifest_files(tree, paths)[0] if paths else set()
    installed_files: Files = []
    for path in sorted(listed):
        tree.effort.spend(4 + path.count("/"))
        folder = path.rpartition("/")[0]
        while folder and folder not in folders:
            folder = folder.rpartition("/")[0]
        if folder in folders:
            name = path[len(folder) + 1 :] if folder else path
            if not _is_excluded(name, folders[folder], declared.no_data, tree.effort):
                installed_files += by_folder([joined(folders[folder].replace(".", "/"), name)])
    return installed_files


def _is_excluded(path: str, package: str, patterns: Mapping[str, list[str]], effort: Effort) -> bool:
    """Check whether exclude_package_data names the data file at `path` in the folder of `package`."""
    excluding = (*patterns.get("*", ()), *patterns.get("", ()), *patterns.get(package, ()))
    effort.spend(len(excluding) * (1 + len(path) // 64))
    return any(matches_glob(path, pattern) for pattern in excluding)


def _without_excluded(
    folders: Mapping[str, str], patterns: Mapping[str, list[str]], files: Files, effort: Effort
) -> Files:
    """Return `files` without the data files that exclude_package_data names. Modules of packages are not data."""
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
        below = paths_of([(folder[len(package) + 1 :], inside)])
        paths = [path for path in below if not _is_excluded(path, folders.get(package, ""), patterns, effort)]
        kept += moved(by_folder(paths), "", package)
    return kept


def _discovered(tree: SourceTree, declared: _Declared) -> Installed:
    """Return what setuptools discovers without declarations: the src layout, or packages at the top, or one module."""
    named = {package: folder for package, folder in declared.package_dir.items() if package}
    source = declared.package_dir.get("", "src")
    if named:
        files = [each for package, folder in named.items() for each in moved(tree.below(folder), folder, package)]
        return declared.installed("setuptools package-dir", files, declared.extensions)
    if source and tree.has_folder(source):
        source_files = tree.uncompiled(tree.below(source))
        return declared.installed("setuptools src layout", moved(source_files, source), declared.extensions)
    tops = [
        top
        for top in tree.tops
        if top not in NOT_PACKAGES and is_identifier(top.removesuffix("-stubs")) and top[0] != "_"
    ]
    if tops:
        files = [each for top in tops for each in tree.below(top)]
        if len({top.removesuffix("-stubs") for top in tops}) > 1:
            declared.doubt(ModulesGrade.DERIVED)  # setuptools does not choose between several packages
        return declared.installed("setuptools flat layout", files, declared.extensions)
    modules = [name for name in tree.modules_at_top if name[:1] not in {"", ".", "_"} and name not in NOT_MODULES]
    if len(modules) > 1:
        declared.doubt(ModulesGrade.DERIVED)
    files = by_folder(f"{name}.py" for name in modules)
    return declared.installed("setuptools single module", files, declared.extensions)


def _checked(tree: SourceTree, declared: _Declared, found: Installed) -> Installed:
    """Return `found` with modules that only top_level.txt names.

    A build writes top_level.txt again, so declared modules stay even if it does not name them. It decides between
    discovered modules, and between extension modules whose names are guesses.
    """
    if tree.top_level is None:
        return found
    named = {name.replace("/", ".").partition(".")[0] for name in tree.top_level}
    at_top = paths_of((folder, inside) for folder, inside in found.files if not folder)
    in_folders = {folder.partition("/")[0] for folder, _ in found.files if folder}
    tops = {top: top.partition(".")[0] for top in (*at_top, *in_folders)}
    kept = {top for top, name in tops.items() if top in named or name in named}
    files = found.files
    if len(kept) < len(tops) and not declared.is_declared:  # a build fails if it discovers several
        files = [each for each in files if each[0].partition("/")[0] in kept]
        files += by_folder(path for path in at_top if path in kept)
    extensions = tuple(name for name in found.extensions if name.partition(".")[0] in named)
    if len(kept) < len(tops) or len(extensions) < len(found.extensions):
        declared.doubt(ModulesGrade.DERIVED)
    if declared.names_extensions:
        extensions = found.extensions
    present = {name for name in extensions if "." not in name} | set(tops.values())
    if missing := sorted(named - present):
        more = _by_top_level(tree, declared, missing)
        compiled = {name.partition(".")[0] for name in extensions}
        files = [*files, *more.files]
        extensions = (*extensions, *(name for name in more.extensions if name not in compiled))
    return declared.installed(found.by, files, extensions)


def _roots(tree: SourceTree, declared: _Declared) -> list[str]:
    """Return the folders that may contain top-level names, most likely first. The .egg-info lies next to packages."""
    next_to_egg_info = [tree.egg_info.rpartition("/")[0]] if tree.egg_info else []
    return list(dict.fromkeys([*filter(None, [declared.package_dir.get("")]), *next_to_egg_info, *_DISCOVERED_IN]))


def _by_top_level(tree: SourceTree, declared: _Declared, names: Iterable[str] | None = None) -> Installed:
    """Return the files below the names in top_level.txt.

    A name without files is an extension module if anything is compiled. Below packages, folders without `__init__.py`
    are skipped, as in find_packages().
    """
    files: Files = []
    extensions = list(declared.extensions) if names is None else []
    compiled = {each.partition(".")[0] for each in declared.extensions}
    for name in tree.top_level or () if names is None else names:
        name = name.replace("/", ".").strip(".")
        if name in declared.package_dir:
            below, root, target = tree.below(declared.package_dir[name]), declared.package_dir[name], name
        else:
            root, below = named_in(tree, _roots(tree, declared), name)
            target = ""
            if not below and name not in compiled and (package := package_at_top(tree, name)):
                below, target = without_scripts(tree), package
                declared.doubt(ModulesGrade.GUESSED)
        is_there = below or name in compiled or names is not None
        declared.doubt(ModulesGrade.DERIVED if is_there else ModulesGrade.GUESSED)
        if below:
            files += moved(below if declared.takes_data else in_packages(tree, root, below), root, target)
        elif tree.has_compiled_sources and name not in compiled and not is_namespace(tree, name):
            extensions.append(f"{declared.ext_package}{name}")
    return declared.installed("top_level.txt", files, extensions)
