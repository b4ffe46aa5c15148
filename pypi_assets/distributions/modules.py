"""Which modules a tree of files provides: the dotted names that `import` finds once the tree is on sys.path.

What a module is:
- A source file (`a/b.py` is `a.b`), a sourceless `.pyc` file, or an extension module (`.so`, `.pyd`) without its ABI
  tag, whatever interpreter and platform it is made for: `a/_b.cpython-311-x86_64-linux-gnu.so` is `a._b`.
- A folder with an `__init__` (source, bytecode or extension module) is a package; a folder without is a namespace
  package (PEP 420) if a module lies somewhere below it. Folders that hold nothing but data are not listed, although
  Python would import them as empty namespaces.
- Each part of the name is an identifier in the sense of str.isidentifier(). So private names count, and keywords too,
  which importlib finds. Module files with another path (`my-app/x.py`, `libs/libfoo-1a2b.so`) are counted and no more.
- A package comes before a module of the same name, and a module before a namespace package: `a.py` hides `a/b.py`
  where `a` has no `__init__`.
- `__init__` itself is not listed, nor what lies in `__pycache__` or in an egg's EGG-INFO, nor a `__main__` at the root.

Stub files (`.pyi`) are no modules: they are listed as stubs, by the module that they describe. In a stub-only package
(`foo-stubs/bar.pyi`, PEP 561) that is `foo.bar`; elsewhere a stub counts where no module of its name is in the tree.
"""

import re
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from pypi_assets.distributions.limits import LimitExceededError

MAX_DEPTH = 32
MAX_NAME_LENGTH = 500
MAX_MODULES = 250_000
MAX_CHARACTERS = 16 * 1024**2
"""Of all names together, but for their last parts. Both are ten times what the largest distributions have. Each module
brings the names of its parents along, so that without these bounds a small hostile file would give names without end.
"""

_ABI_TAG = re.compile(r"abi\d+t?|(?:cpython|pypy|pyston|graalpy|cp|pp)-?\d.*")
_COMPILED_SUFFIXES = (".pyc", ".so", ".pyd")
_LEFT_OUT_FOLDERS = frozenset({"__pycache__", "__init__", "EGG-INFO"})
_STUB_ONLY = "-stubs"
_LEFT_OUT = "."
"""Stands for the prefix of a folder in which nothing is a module; no real one looks like it."""


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """`names` and `stubs` sorted; `unnameable` counts module files whose path is no dotted name, `shadowed` those that
    another module of the same tree hides from import."""

    names: tuple[str, ...]
    stubs: tuple[str, ...] = ()
    unnameable: int = 0
    shadowed: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        if self.shadowed:
            return (f"{self.shadowed} module files are left out: a module beside their folder hides them",)
        return ()


def find_modules(
    paths: Iterable[str], *, compiled: bool = True, installed: Callable[[str], str | None] | None = None
) -> ModuleNames:
    """The modules in a tree; `paths` are its files, relative to its root, with `/`.

    `installed` maps each folder of a path (`""` is the root) to the folder where its files are installed, None where
    they are not. Raises LimitExceededError where there are more than MAX_MODULES, or of more than MAX_CHARACTERS.
    """
    stems, stub_stems = _by_folder(paths, compiled=compiled)
    prefix_of = _Prefixes().__getitem__
    packages: set[str] = set()
    modules: set[str] = set()
    folders: set[str] = set()
    unnameable = 0
    characters = 0
    for folder, found in stems.items():
        place = folder if installed is None else installed(folder)
        if place is None or (prefix := prefix_of(place)) == _LEFT_OUT:
            continue
        if prefix is None:
            unnameable += len(found)
            continue
        room = MAX_NAME_LENGTH - len(prefix)
        named = [stem for stem in found if stem.isidentifier() and len(stem) <= room]
        unnameable += len(found) - len(named)
        if not prefix:
            modules.update(stem for stem in named if stem not in {"__init__", "__main__"})
            continue
        parent = prefix[:-1]
        for stem in named:
            if stem == "__init__":
                packages.add(parent)
            else:
                modules.add(prefix + stem)
        while named and parent and parent not in folders:
            folders.add(parent)
            characters += len(parent)
            parent = parent.rpartition(".")[0]
        characters += len(named) * len(prefix)
        if len(modules) + len(folders) > MAX_MODULES:
            raise LimitExceededError(f"more than {MAX_MODULES} modules")
        if characters > MAX_CHARACTERS:
            raise LimitExceededError(f"the names of modules are longer than {MAX_CHARACTERS} characters together")
    names = modules | folders  # packages are folders too
    shadowed = 0
    if hiding := (modules & folders) - packages:
        reachable = {name for name in modules | packages if hiding.isdisjoint(ancestry(name)[:-1])}
        shadowed = len(modules | packages) - len(reachable)
        names = {parent for name in reachable for parent in ancestry(name)}
    stubs = _stubs(stub_stems, installed, names, prefix_of)
    return ModuleNames(tuple(sorted(names)), tuple(sorted(stubs)), unnameable, shadowed)


def _by_folder(paths: Iterable[str], *, compiled: bool) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The stems of module files and of stub files, by the folder in which they lie."""
    stems: dict[str, list[str]] = {}
    stub_stems: dict[str, list[str]] = {}
    for path in paths:
        if path.endswith(".py"):  # by far the most: the short way
            folder, _, stem = path[:-3].rpartition("/")
            try:
                stems[folder].append(stem)
            except KeyError:
                stems[folder] = [stem]
        elif path.endswith(".pyi"):
            folder, _, stem = path[:-4].rpartition("/")
            stub_stems.setdefault(folder, []).append(stem)
        elif compiled and path.endswith(_COMPILED_SUFFIXES):
            folder, _, filename = path.rpartition("/")
            stems.setdefault(folder, []).append(_compiled_stem(filename))
    return stems, stub_stems


def _compiled_stem(filename: str) -> str:
    """`_speedups` of `_speedups.cpython-311-x86_64-linux-gnu.so`."""
    stem, _, suffix = filename.rpartition(".")
    name, _, tag = stem.partition(".")
    return name if suffix != "pyc" and _ABI_TAG.fullmatch(tag) else stem


def _stubs(
    stub_stems: dict[str, list[str]],
    installed: Callable[[str], str | None] | None,
    names: Container[str],
    prefix_of: Callable[[str], str | None],
) -> set[str]:
    stubs = set()
    for folder, found in stub_stems.items():
        place = folder if installed is None else installed(folder)
        if place is None:
            continue
        top, slash, rest = place.partition("/")
        is_stub_only = top.endswith(_STUB_ONLY)
        prefix = prefix_of(top.removesuffix(_STUB_ONLY) + slash + rest)
        if prefix is None or prefix == _LEFT_OUT:
            continue
        for stem in found:
            if stem.isidentifier() and len(prefix) + len(stem) <= MAX_NAME_LENGTH:
                name = prefix[:-1] if stem == "__init__" else f"{prefix}{stem}"
                if name and (is_stub_only or name not in names):
                    stubs.add(name)
    return stubs


class _Prefixes(dict[str, str | None]):
    """`a.b.` for the folder `a/b`; None where that is no dotted name, _LEFT_OUT where nothing in it is a module."""

    def __missing__(self, folder: str) -> str | None:
        parent, _, last = folder.rpartition("/")
        if not folder:
            prefix: str | None = ""
        elif last in _LEFT_OUT_FOLDERS or folder == "__main__":
            prefix = _LEFT_OUT
        elif folder.count("/") >= MAX_DEPTH:  # no name; but what is left out stays so, however deep
            prefix = None if _LEFT_OUT_FOLDERS.isdisjoint(folder.split("/")) else _LEFT_OUT
        elif (prefix := self[parent]) is not None and prefix != _LEFT_OUT:
            is_name = last.isidentifier() and folder.count("/") < MAX_DEPTH - 1
            prefix = f"{prefix}{last}." if is_name else None
        self[folder] = prefix
        return prefix


def ancestry(name: str) -> list[str]:
    """`a.b.c` as a, a.b and a.b.c."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
