"""Find the packages, extension modules and top-level modules in an sdist as setuptools does."""

import re
from collections.abc import Iterable

from pypi_assets.characters import is_identifier, lower
from pypi_assets.distributions.members import Files, Folder, by_folder, paths_of
from pypi_assets.distributions.path_patterns import Effort, Patterns, matches_glob, matching_paths
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets.distributions.source_tree import SourceTree, clean_path, joined, moved


def find_packages(
    tree: SourceTree, where: str, include: Iterable[str], exclude: Iterable[str], *, namespaces: bool
) -> list[str]:
    """Return the dotted names of the packages below `where`.

    A package has an `__init__.py`, and so do all folders between it and `where`. With `namespaces`, any folder counts.
    """
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


def copied_files(tree: SourceTree, script: SetupArguments) -> Files:
    """Return the files in folders that the script's commands copy, each once, relative to the packages' folder.

    The top folder is skipped because it contains other files during a build.
    """
    files: Files = []
    taken: list[str] = []
    root = clean_path((script.package_dir or {}).get("", ""))
    for folder in sorted({clean_path(folder) for folder in script.copied} - {""}):
        if not any(folder.startswith(f"{above}/") for above in taken):
            taken.append(folder)
            files += moved(tree.below(folder), root if f"{folder}/".startswith(f"{root}/") else "")
    return files


def _named_by(patterns: Iterable[str], names: list[str], effort: Effort) -> list[str]:
    """Return the dotted `names` that `patterns` match. Names with a star at one end, the usual patterns, are fast."""
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


_EXTENSION = re.compile(
    rb"Extension\(\s*+(?:name\s*+=\s*+|target\s*+=\s*+)?[\"']([A-Za-z_][\w.]*+)[\"']"
    rb"(?:\s*+,\s*+(?:sources\s*+=\s*+)?\[\s*+[\"']([^\"'\n]*+)[\"'])?"
)
"""The name of an extension module and its first source."""
_TRIPLE = r"'''[^'\\]*+(?:'{0,2}+(?:\\.|[^'\\])[^'\\]*+)*+(?:'''|'{0,2}+\\?\Z)"
_SINGLE = r"'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+(?:'|\\?\Z|(?=[\r\n]))"
_STRINGS = (_TRIPLE, _TRIPLE.replace("'", '"'), _SINGLE, _SINGLE.replace("'", '"'))
_CODE = re.compile("{}|{}|#[^\r\n]*+|([^\"'#]++|{}|{})".format(*_STRINGS).encode(), re.DOTALL)
"""The group is code outside of comments and docstrings. `#` inside of its strings does not begin a comment.

An unclosed string ends with its line, or with the file if it is a triple-quoted one, so that no part is searched twice.
No `(?!...)` is inside of a part repeated by `*+`, since that does not match before Python 3.11.5.
"""
_WRITERS = ("grpcio-tools", "setuptools-protobuf", "setuptools-golang", "setuptools-zig", "milksnake", "setuptools-dso")


def literal_extensions(tree: SourceTree) -> tuple[str, ...]:
    """Return the literal names in calls of Extension() in setup.py, evaluated or not, and in pyproject.toml."""
    source = tree.files.get("setup.py", b"")
    calls = _EXTENSION.findall(b"".join(_CODE.findall(source))) if b"Extension(" in source else []
    names = [name.decode() for name, source in calls if tree.uses_cython or not source.endswith(b".pyx")]
    return tuple(dict.fromkeys((*names, *pyproject_extensions(tree))))


def pyproject_extensions(tree: SourceTree) -> list[str]:
    """Return the `ext-modules` of [tool.setuptools] and [tool.setuptools-rust]."""
    tool = tree.table("tool")
    names: list[str] = []
    for table, array, key in (("setuptools", "ext-modules", "name"), ("setuptools-rust", "ext-modules", "target")):
        entries = tool.get(table, {}).get(array) if isinstance(tool.get(table), dict) else None
        literal = [entry.get(key) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        names += strings(literal)
    return names


def has_own_build_code(tree: SourceTree) -> bool:
    """Check whether the project has its own commands, or requires a tool that adds modules which no argument names."""
    required = strings(tree.table("build-system").get("requires"))
    return "cmdclass" in tree.table("tool", "setuptools") or any(lower(each).startswith(_WRITERS) for each in required)


def has_generated_source(tree: SourceTree, name: str) -> bool:
    """Check whether the C source of a .pyx lies next to it, so that it is built without Cython."""
    folder, _, last = name.replace(".", "/").rpartition("/")
    inside = tree.members.get(f"{tree.top}{folder}".rstrip("/"), Folder())
    return f"{last}.c" in inside or f"{last}.cpp" in inside


def cythonized(tree: SourceTree, script: SetupArguments) -> list[str]:
    """Return the modules that cythonize() builds from its files and patterns."""
    sources = [path for path in paths_of(tree.below("")) if path.endswith(".pyx")] if script.cython_sources else []
    matches = matching_paths(sources, map(clean_path, script.cython_sources), Patterns.GLOB, tree.effort)
    return [_cython_name(tree, path.removesuffix(".pyx")) for path in matches]


def _cython_name(tree: SourceTree, path: str) -> str:
    """Return the dotted name that Cython derives from the path of a file and the packages around it."""
    folder, _, last = path.rpartition("/")
    parts = [last]
    while folder in tree.packages:
        folder, _, last = folder.rpartition("/")
        parts.insert(0, last)
    return ".".join(parts)


_SEPARATOR = re.compile(r"[-.]")
_NOT_PACKAGES = (
    "ci bin debian doc docs documentation manpages news newsfragments changelog test tests unit_test unit_tests"
    " example examples scripts tools util utils python build benchmark benchmarks exercise exercises htmlcov tasks"
    " fabfile site_scons dist env venv requirements"
)
NOT_PACKAGES = frozenset(_NOT_PACKAGES.split())
"""Top-level folders that setuptools does not discover as packages. It also skips names that begin with `_` or a dot."""
_NOT_MODULES = (
    "setup conftest test tests example examples build toxfile noxfile pavement dodo tasks fabfile SConstruct Sconstruct"
    " sConstruct sconstruct conanfile manage benchmark benchmarks exercise exercises"
)
NOT_MODULES = frozenset(_NOT_MODULES.split())


def named_in(tree: SourceTree, roots: list[str], name: str) -> tuple[str, Files]:
    """Return the folder that contains `name`, one of `roots` or any top-level folder, and the files found there."""
    path = name.replace(".", "/")
    for root in (*roots, *tree.tops):
        tree.effort.spend(4)
        start = f"{root}/{path}" if root else path
        if tree.has_file(f"{start}.py"):
            return root, [*by_folder([f"{start}.py"]), *(tree.below(start) if start in tree.packages else ())]
        if files := tree.below(start):
            return root, files
    return "", []


def package_at_top(tree: SourceTree, name: str) -> str:
    """Return `a/b` if the top folder is itself the package `a.b` and the project has this name; otherwise "".

    A single `__init__.py` does not count if it is next to sources of an extension module and top_level.txt names
    several modules. Such a file only describes the project.
    """
    parts = _SEPARATOR.split(tree.project or "")
    others = [*(set(tree.modules_at_top) - NOT_MODULES - {"__init__"}), *(set(tree.tops) & tree.packages.keys())]
    if not others and tree.has_compiled_sources and len(tree.top_level or ()) > 1:
        return ""
    is_package = parts[0] == name and tree.has_file("__init__.py") and all(map(is_identifier, parts))
    return "/".join(parts) if is_package else ""


def is_namespace(tree: SourceTree, name: str) -> bool:
    """Check whether the project's name lies in the namespace `name`, which is then not an extension module."""
    return (tree.project or "").startswith(f"{name}.")


def without_scripts(tree: SourceTree) -> Files:
    """Return the files of the tree without folders and scripts that usually lie next to packages."""
    at_top = by_folder(f"{name}.py" for name in tree.modules_at_top if name not in NOT_MODULES)
    return at_top + [each for top in tree.tops if top not in NOT_PACKAGES for each in tree.below(top)]


def in_packages(tree: SourceTree, root: str, files: Files) -> Files:
    """Return `files` without folders that have no `__init__.py` but lie below a folder that has one."""
    known: dict[str, bool] = {root: True}

    def is_kept(folder: str) -> bool:
        if folder not in known:
            parent = folder.rpartition("/")[0]
            known[folder] = is_kept(parent) and (
                folder in tree.packages or parent not in tree.packages or parent == root
            )
        return known[folder]

    return [(folder, inside) for folder, inside in files if is_kept(folder)]


_ADDED = re.compile(rb"\badd_extension\(\s*+[\"']([A-Za-z_][\w.]*+)[\"']")


def configured_extensions(tree: SourceTree, source: str) -> list[str]:
    """Return the dotted names of modules that are literals in calls of add_extension() in packages below `source`."""
    start = f"{source}/" if source else ""
    names = []
    for path, content in tree.files.items():
        folder, _, filename = path.rpartition("/")
        if filename == "setup.py" and b"Configuration" in content and f"{folder}/".startswith(start):
            inside = folder[len(start) :] if folder in tree.packages else ""
            if inside or folder == source:
                names += [joined(inside, name.decode()).replace("/", ".") for name in _ADDED.findall(content)]
    return names
