"""The extension modules that setuptools builds, by the names in setup.py and pyproject.toml."""

import re

from pypi_assets.characters import lower
from pypi_assets.distributions.members import Folder, paths_of
from pypi_assets.distributions.path_patterns import Patterns, matching_paths
from pypi_assets.distributions.pyproject import strings
from pypi_assets.distributions.setup_script import SetupArguments
from pypi_assets.distributions.source_tree import SourceTree, clean_path

_EXTENSION = re.compile(
    rb"Extension\(\s*+(?:name\s*+=\s*+|target\s*+=\s*+)?[\"']([A-Za-z_][\w.]*+)[\"']"
    rb"(?:\s*+,\s*+(?:sources\s*+=\s*+)?\[\s*+[\"']([^\"'\n]*+)[\"'])?"
)
"""The name of an extension module, and its first source."""
_TRIPLE = r"'''[^'\\]*+(?:'{0,2}+(?:\\.|[^'\\])[^'\\]*+)*+(?:'''|'{0,2}+\\?\Z)"
_SINGLE = r"'[^'\\\r\n]*+(?:\\.[^'\\\r\n]*+)*+(?:'|\\?\Z|(?=[\r\n]))"
_STRINGS = (_TRIPLE, _TRIPLE.replace("'", '"'), _SINGLE, _SINGLE.replace("'", '"'))
_CODE = re.compile("{}|{}|#[^\r\n]*+|([^\"'#]++|{}|{})".format(*_STRINGS).encode(), re.DOTALL)
"""The group is what is neither a comment nor a docstring; in its strings # begins no comment. A string without its end
reaches to the end of its line, or of all, so that no part is searched twice. No (?!...) is in what is repeated by *+,
which would not match before Python 3.11.5."""
_WRITERS = ("grpcio-tools", "setuptools-protobuf", "setuptools-golang", "setuptools-zig", "milksnake", "setuptools-dso")


def literal_extensions(tree: SourceTree) -> tuple[str, ...]:
    """The names that stand literally in calls of Extension() in setup.py, followed or not, and in pyproject.toml."""
    source = tree.files.get("setup.py", b"")
    found = _EXTENSION.findall(b"".join(_CODE.findall(source))) if b"Extension(" in source else []
    names = [name.decode() for name, source in found if tree.uses_cython or not source.endswith(b".pyx")]
    return tuple(dict.fromkeys((*names, *pyproject_extensions(tree))))


def pyproject_extensions(tree: SourceTree) -> list[str]:
    """The `ext-modules` of [tool.setuptools] and [tool.setuptools-rust]."""
    tool = tree.table("tool")
    names: list[str] = []
    for table, array, key in (("setuptools", "ext-modules", "name"), ("setuptools-rust", "ext-modules", "target")):
        entries = tool.get(table, {}).get(array) if isinstance(tool.get(table), dict) else None
        literal = [entry.get(key) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
        names += strings(literal)
    return names


def has_own_build_code(tree: SourceTree) -> bool:
    """Whether pyproject.toml names commands of the project's own, or a build requires what writes or compiles modules
    that no argument names."""
    required = strings(tree.table("build-system").get("requires"))
    return "cmdclass" in tree.table("tool", "setuptools") or any(lower(each).startswith(_WRITERS) for each in required)


def has_generated_source(tree: SourceTree, name: str) -> bool:
    """Whether what Cython made of a module's .pyx lies next to it, so that it is built without Cython."""
    folder, _, last = name.replace(".", "/").rpartition("/")
    inside = tree.members.get(f"{tree.top}{folder}".rstrip("/"), Folder())
    return f"{last}.c" in inside or f"{last}.cpp" in inside


def cythonized(tree: SourceTree, script: SetupArguments) -> list[str]:
    """The modules that cythonize() makes of the files and patterns that it gets."""
    sources = [path for path in paths_of(tree.below("")) if path.endswith(".pyx")] if script.cython_sources else []
    found = matching_paths(sources, map(clean_path, script.cython_sources), Patterns.GLOB, tree.effort)
    return [_cython_name(tree, path.removesuffix(".pyx")) for path in found]


def _cython_name(tree: SourceTree, path: str) -> str:
    """The dotted name that Cython takes from where a file lies: below the folders that are packages."""
    folder, _, last = path.rpartition("/")
    parts = [last]
    while folder in tree.packages:
        folder, _, last = folder.rpartition("/")
        parts.insert(0, last)
    return ".".join(parts)
