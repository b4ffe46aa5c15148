"""Find the modules in a tree of files: the dotted names that `import` finds if the tree is on sys.path.

Rules for modules:

- A source file (`a/b.py` is `a.b`), a `.pyc` file without source, or an extension module (`.so`, `.pyd`) is a module.
  The ABI tag is ignored, for any interpreter and platform: `a/_b.cpython-311-x86_64-linux-gnu.so` is `a._b`.
- A folder with an `__init__` (source, bytecode or extension module) is a package. A folder without it is a namespace
  package (PEP 420) if it contains a module at any depth. Folders with only data are not listed, although Python would
  import them as empty namespaces.
- Each part of the name is an identifier by one fixed version of Unicode (characters.py). Private names count, and so do
  keywords, which importlib finds. Files with other paths (`my-app/x.py`, `libs/libfoo-1a2b.so`) are only counted.
- A package has priority over a module of the same name, and a module over a namespace package: `a.py` hides `a/b.py` if
  `a` has no `__init__`.
- `__init__` itself is not listed, nor are files in `__pycache__` or in an egg's EGG-INFO, nor a `__main__` at the root.

Stub files (`.pyi`) are not modules. They are listed as stubs under the module that they describe. In a stub-only
package (`foo-stubs/bar.pyi`, PEP 561) that is `foo.bar`. Elsewhere a stub counts only if the tree has no module of its
name.
"""

import re
from collections.abc import Collection, Container, Iterable
from dataclasses import dataclass, field

from pypi_assets.characters import identifier_test, is_identifier
from pypi_assets.distributions.limits import LimitExceededError
from pypi_assets.distributions.members import Folder
from pypi_assets.distributions.record import AMBIGUOUS

MAX_DEPTH = 32
MAX_NAME_LENGTH = 500
MAX_MODULES = 250_000
MAX_CHARACTERS = 16 * 1024**2
"""The maximum total length of all names, without their last parts.

This limit and MAX_MODULES are ten times the values of the largest distributions. Each module adds the names of its
parents, so a small hostile file could otherwise create an unlimited number of names.
"""

_ABI_TAG = re.compile(r"abi\d+t?|(?:cpython|pypy|pyston|graalpy|cp|pp)-?\d.*", re.ASCII)
_COMPILED_SUFFIXES = (".pyc", ".so", ".pyd")
_LEFT_OUT_FOLDERS = frozenset({"__pycache__", "__init__", "EGG-INFO"})
_STUB_ONLY = "-stubs"
_LEFT_OUT = "."
"""Stands for the prefix of a folder that contains no modules. It cannot be a real prefix."""


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """The modules of a tree.

    `names` and `stubs` are sorted. `unnameable` counts module files whose path is not a dotted name, `shadowed` counts
    modules hidden by another module of the tree, and `too_deep` counts modules beyond MAX_DEPTH or MAX_NAME_LENGTH.
    """

    names: tuple[str, ...]
    stubs: tuple[str, ...] = ()
    unnameable: int = 0
    shadowed: int = 0
    too_deep: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        notes = []
        if self.shadowed:
            notes.append(
                f"{self.shadowed} module files are left out: a module of the same name as their folder hides them"
            )
        if self.too_deep:
            notes.append(
                f"{AMBIGUOUS} {self.too_deep} modules are left out, whose names have too many parts or characters"
            )
        return tuple(notes)


def find_modules(files: Iterable[tuple[str, Folder]]) -> ModuleNames:
    """Return the modules in a tree of `files`, whose folders are relative to its root and use `/`.

    Raise LimitExceededError for more than MAX_MODULES modules or MAX_CHARACTERS characters.

    >>> find_modules(by_folder(["demo/__init__.py", "demo/part.py"])).names
    ('demo', 'demo.part')
    """
    modules = _FoundModules()
    stubs: list[tuple[str, list[str]]] = []
    for folder, inside in files:
        stems = inside.stems
        if inside.others and not inside.others_are_data:
            names = inside.other_names
            stems += [_compiled_stem(name) for name in names if name.endswith(_COMPILED_SUFFIXES)]
            if stub_stems := [name.removesuffix(".pyi") for name in names if name.endswith(".pyi")]:
                stubs.append((folder, stub_stems))
        if stems:
            modules.add(folder, inside, stems)
    importable, shadowed = modules.importable()
    stub_names = _stubs(stubs, importable)
    return ModuleNames(
        tuple(sorted(importable)), tuple(sorted(stub_names)), modules.unnameable, shadowed, modules.too_deep
    )


@dataclass(slots=True)
class _FoundModules:
    """The modules of a tree so far, and the dotted names of the `folders` that contain any at some depth.

    `inits` are the modules named `__init__`. `prefixes` are the dotted names of folders with modules, each with a final
    dot.
    """

    modules: list[str] = field(default_factory=list)
    inits: list[str] = field(default_factory=list)
    folders: dict[str, None] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    unnameable: int = 0
    too_deep: int = 0
    characters: int = 0

    def add(self, folder: str, inside: Folder, stems: list[str]) -> None:
        """Add the modules `inside` a folder. `stems` are their names. Raise LimitExceededError."""
        parent, _, last = folder.rpartition("/")
        above = self.prefixes.get(parent)
        prefix: str | None
        if above and is_identifier(last) and last not in _LEFT_OUT_FOLDERS and folder.count("/") < MAX_DEPTH - 1:
            prefix = f"{above}{last}."  # the package above is known for most folders
        elif (prefix := _prefix(folder.split("/"))) == _LEFT_OUT:
            return
        if prefix is None:
            self.unnameable += len(stems)
            if folder.count("/") >= MAX_DEPTH - 1 and all(map(is_identifier, folder.split("/"))):
                self.too_deep += sum(map(is_identifier, stems))
            return
        is_name = identifier_test(inside.sources, inside.others)
        named = [prefix + stem for stem in stems if is_name(stem)]
        if len(prefix) + len(inside.sources) + len(inside.others) > MAX_NAME_LENGTH:
            named = [name for name in named if len(name) <= MAX_NAME_LENGTH]
            self.too_deep += sum(map(is_name, stems)) - len(named)
        self.unnameable += len(stems) - len(named)
        if not named:
            return
        self.modules += named
        if "__init__" in stems and (init := f"{prefix}__init__") in named:
            self.inits.append(init)
        self.prefixes[folder] = prefix
        package = prefix[:-1]
        while package and package not in self.folders:
            self.folders[package] = None
            self.characters += len(package)
            package = "" if above else package.rpartition(".")[0]
        self.characters += len(named) * len(prefix)
        if len(self.modules) + len(self.folders) > MAX_MODULES:
            raise LimitExceededError(f"more than {MAX_MODULES} modules")
        if self.characters > MAX_CHARACTERS:
            raise LimitExceededError(f"the names of modules are longer than {MAX_CHARACTERS} characters together")

    def importable(self) -> tuple[Collection[str], int]:
        """Return the names of all modules and packages that are not hidden, and the number of hidden modules."""
        modules = dict.fromkeys(self.modules)  # not a set, since a nearly ordered list is sorted faster
        for name in (*self.inits, "__main__"):
            modules.pop(name, None)
        if modules.keys().isdisjoint(self.folders):
            modules |= self.folders  # packages are folders, too
            return modules, 0
        packages = {name.removesuffix(".__init__") for name in self.inits}
        hiding = modules.keys() & self.folders.keys() - packages
        present = modules.keys() | packages - {"__init__"}
        reachable = {name for name in present if hiding.isdisjoint(ancestry(name)[:-1])}
        return {parent for name in reachable for parent in ancestry(name)}, len(present) - len(reachable)


def _compiled_stem(filename: str) -> str:
    """Return `_speedups` for `_speedups.cpython-311-x86_64-linux-gnu.so`."""
    stem, _, suffix = filename.rpartition(".")
    name, _, tag = stem.partition(".")
    return name if suffix != "pyc" and _ABI_TAG.fullmatch(tag) else stem


def _stubs(stub_stems: Iterable[tuple[str, list[str]]], names: Container[str]) -> set[str]:
    stubs = set()
    for folder, stems in stub_stems:
        parts = folder.split("/")
        is_stub_only = parts[0].endswith(_STUB_ONLY)
        parts[0] = parts[0].removesuffix(_STUB_ONLY)
        prefix = _prefix(parts)
        if prefix is None or prefix == _LEFT_OUT:
            continue
        for stem in stems:
            if is_identifier(stem) and len(prefix) + len(stem) <= MAX_NAME_LENGTH:
                name = prefix[:-1] if stem == "__init__" else f"{prefix}{stem}"
                if name and (is_stub_only or name not in names):
                    stubs.add(name)
    return stubs


def _prefix(parts: list[str]) -> str | None:
    """Return `a.b.` for the folder `a/b`, None if it is not a dotted name, or _LEFT_OUT if it cannot have modules."""
    if parts == [""]:
        return ""
    if not _LEFT_OUT_FOLDERS.isdisjoint(parts) or parts[0] == "__main__":
        return _LEFT_OUT
    is_name = len(parts) < MAX_DEPTH and all(map(is_identifier, parts))
    return f"{'.'.join(parts)}." if is_name else None


def ancestry(name: str) -> list[str]:
    """Return `a`, `a.b` and `a.b.c` for `a.b.c`."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
