"""Which modules a tree of files provides: the dotted names that `import` finds once the tree is on sys.path.

What a module is:
- A source file (`a/b.py` is `a.b`), a sourceless `.pyc` file, or an extension module (`.so`, `.pyd`) without its ABI
  tag, whatever interpreter and platform it is made for: `a/_b.cpython-311-x86_64-linux-gnu.so` is `a._b`.
- A folder with an `__init__` (source, bytecode or extension module) is a package; a folder without is a namespace
  package (PEP 420) if a module lies somewhere below it. Folders that hold nothing but data are not listed, although
  Python would import them as empty namespaces.
- Each part of the name is an identifier, by the same Unicode on each Python (characters.py). So private names count,
  and keywords too, which importlib finds. Module files with another path (`my-app/x.py`, `libs/libfoo-1a2b.so`) are
  counted and no more.
- A package comes before a module of the same name, and a module before a namespace package: `a.py` hides `a/b.py`
  where `a` has no `__init__`.
- `__init__` itself is not listed, nor what lies in `__pycache__` or in an egg's EGG-INFO, nor a `__main__` at the root.

Stub files (`.pyi`) are no modules: they are listed as stubs, by the module that they describe. In a stub-only package
(`foo-stubs/bar.pyi`, PEP 561) that is `foo.bar`; elsewhere a stub counts where no module of its name is in the tree.
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
"""Of all names together, but for their last parts. Both are ten times what the largest distributions have. Each module
brings the names of its parents along, so that without these bounds a small hostile file would give names without end.
"""

_ABI_TAG = re.compile(r"abi\d+t?|(?:cpython|pypy|pyston|graalpy|cp|pp)-?\d.*", re.ASCII)
_COMPILED_SUFFIXES = (".pyc", ".so", ".pyd")
_LEFT_OUT_FOLDERS = frozenset({"__pycache__", "__init__", "EGG-INFO"})
_STUB_ONLY = "-stubs"
_LEFT_OUT = "."
"""Stands for the prefix of a folder in which nothing is a module; no real one looks like it."""


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """`names` and `stubs` sorted; `unnameable` counts module files whose path is no dotted name, `shadowed` those that
    another module of the same tree hides from import, and `too_deep` those beyond MAX_DEPTH or MAX_NAME_LENGTH."""

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
    """The modules in a tree of `files`, whose folders are relative to its root, with `/`.

    Raises LimitExceededError where there are more than MAX_MODULES, or of more than MAX_CHARACTERS.

    >>> find_modules(by_folder(["demo/__init__.py", "demo/part.py"])).names
    ('demo', 'demo.part')
    """
    found = _FoundModules()
    stubs: list[tuple[str, list[str]]] = []
    for folder, inside in files:
        stems = inside.stems
        if inside.others and not inside.others_are_data:
            names = inside.other_names
            stems += [_compiled_stem(name) for name in names if name.endswith(_COMPILED_SUFFIXES)]
            if stub_stems := [name.removesuffix(".pyi") for name in names if name.endswith(".pyi")]:
                stubs.append((folder, stub_stems))
        if stems:
            found.add(folder, inside, stems)
    importable, shadowed = found.importable()
    stub_names = _stubs(stubs, importable)
    return ModuleNames(tuple(sorted(importable)), tuple(sorted(stub_names)), found.unnameable, shadowed, found.too_deep)


@dataclass(slots=True)
class _FoundModules:
    """The modules of a tree so far, and the `folders` that have any somewhere below, by their dotted names.

    `inits` are the modules `__init__`, `prefixes` the dotted names of folders with modules in them, each with a dot.
    """

    modules: list[str] = field(default_factory=list)
    inits: list[str] = field(default_factory=list)
    folders: dict[str, None] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    unnameable: int = 0
    too_deep: int = 0
    characters: int = 0

    def add(self, folder: str, inside: Folder, stems: list[str]) -> None:
        """Adds what is `inside` a folder: `stems` are the names of its modules. Raises LimitExceededError."""
        parent, _, last = folder.rpartition("/")
        above = self.prefixes.get(parent)
        prefix: str | None
        if above and is_identifier(last) and last not in _LEFT_OUT_FOLDERS and folder.count("/") < MAX_DEPTH - 1:
            prefix = f"{above}{last}."  # most folders lie in a package that came before
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
        """The names of all modules and packages that no other one hides, and how many modules are hidden."""
        modules = dict.fromkeys(self.modules)  # no set, since what is nearly in order is sorted sooner
        for name in (*self.inits, "__main__"):
            modules.pop(name, None)
        if modules.keys().isdisjoint(self.folders):
            modules |= self.folders  # packages are folders too
            return modules, 0
        packages = {name.removesuffix(".__init__") for name in self.inits}
        hiding = modules.keys() & self.folders.keys() - packages
        present = modules.keys() | packages - {"__init__"}
        reachable = {name for name in present if hiding.isdisjoint(ancestry(name)[:-1])}
        return {parent for name in reachable for parent in ancestry(name)}, len(present) - len(reachable)


def _compiled_stem(filename: str) -> str:
    """`_speedups` of `_speedups.cpython-311-x86_64-linux-gnu.so`."""
    stem, _, suffix = filename.rpartition(".")
    name, _, tag = stem.partition(".")
    return name if suffix != "pyc" and _ABI_TAG.fullmatch(tag) else stem


def _stubs(stub_stems: Iterable[tuple[str, list[str]]], names: Container[str]) -> set[str]:
    stubs = set()
    for folder, found in stub_stems:
        parts = folder.split("/")
        is_stub_only = parts[0].endswith(_STUB_ONLY)
        parts[0] = parts[0].removesuffix(_STUB_ONLY)
        prefix = _prefix(parts)
        if prefix is None or prefix == _LEFT_OUT:
            continue
        for stem in found:
            if is_identifier(stem) and len(prefix) + len(stem) <= MAX_NAME_LENGTH:
                name = prefix[:-1] if stem == "__init__" else f"{prefix}{stem}"
                if name and (is_stub_only or name not in names):
                    stubs.add(name)
    return stubs


def _prefix(parts: list[str]) -> str | None:
    """`a.b.` for the folder `a/b`; None where that is no dotted name, _LEFT_OUT where nothing in it is a module."""
    if parts == [""]:
        return ""
    if not _LEFT_OUT_FOLDERS.isdisjoint(parts) or parts[0] == "__main__":
        return _LEFT_OUT
    is_name = len(parts) < MAX_DEPTH and all(map(is_identifier, parts))
    return f"{'.'.join(parts)}." if is_name else None


def ancestry(name: str) -> list[str]:
    """`a.b.c` as a, a.b and a.b.c."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
