"""Which modules a tree of files provides: the dotted names that `import` finds once the tree is on sys.path.

Private names count. A name counts if each part `isidentifier()`, so a keyword counts too (importlib finds it). A folder
without `__init__` is a namespace package if there is a module somewhere below it; folders of data are not listed,
although Python would import them as empty namespaces. `__init__` itself, `__pycache__` and a `__main__` at the root
are not listed, stubs (.pyi) are no modules.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pypi_assets.distributions.limits import LimitExceededError

MAX_DEPTH = 32
MAX_NAME_LENGTH = 500
MAX_MODULES = 250_000
"""Ten times what the largest distributions have. Each module brings the names of its parents along, so that without
these bounds a small hostile file would give names without end."""

_ABI_TAG = re.compile(r"abi\d+t?|(?:cpython|pypy|pyston|graalpy|cp|pp)-?\d.*")
_LEFT_OUT_FOLDERS = frozenset({"__pycache__", "__init__", "EGG-INFO"})


@dataclass(frozen=True, slots=True)
class ModuleNames:
    """`names` sorted; `unnameable` counts module files whose path is no dotted name, `shadowed` those that another
    module of the same tree hides from import (`a.py` beside `a/b.py`, where `a` has no `__init__`)."""

    names: tuple[str, ...]
    unnameable: int = 0
    shadowed: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        notes = []
        if self.unnameable:
            notes.append(f"{self.unnameable} module files are left out: their paths are no dotted names")
        if self.shadowed:
            notes.append(f"{self.shadowed} module files are left out: a module beside their folder hides them")
        return tuple(notes)


def module_stem(filename: str, *, compiled: bool = True) -> str | None:
    """The module's own name if a file of this name is one: `_speedups.cpython-311-x86_64-linux-gnu.so` is `_speedups`.

    Extension modules and sourceless .pyc files count only where `compiled`.
    """
    stem, dot, suffix = filename.rpartition(".")
    if not dot:
        return None
    if suffix == "py" or (compiled and suffix == "pyc"):
        return stem
    if compiled and suffix in {"so", "pyd"}:
        name, _, tag = stem.partition(".")
        return name if not tag or _ABI_TAG.fullmatch(tag) else stem
    return None


def find_modules(paths: Iterable[str], *, compiled: bool = True) -> ModuleNames:
    """The modules in a tree; `paths` are its files, relative to its root, with `/`.

    Raises LimitExceededError where there are more than MAX_MODULES.
    """
    packages: set[str] = set()
    modules: set[str] = set()
    unnameable = 0
    for path in paths:
        *folders, filename = path.split("/")
        stem = module_stem(filename, compiled=compiled)
        if stem is None or (folders or [stem])[0] == "__main__" or not _LEFT_OUT_FOLDERS.isdisjoint(folders):
            continue
        if len(folders) >= MAX_DEPTH or len(path) > MAX_NAME_LENGTH or not _is_dotted(folders, stem):
            unnameable += 1
        elif stem == "__init__":
            packages.add(".".join(folders))
        else:
            modules.add(".".join((*folders, stem)))
    packages.discard("")
    hiding = modules - packages
    reachable = {name for name in packages | modules if not any(parent in hiding for parent in ancestry(name)[:-1])}
    names = set(reachable)
    for name in reachable:
        names.update(ancestry(name)[:-1])
        if len(names) > MAX_MODULES:
            raise LimitExceededError(f"more than {MAX_MODULES} modules")
    return ModuleNames(tuple(sorted(names)), unnameable, shadowed=len(packages | modules) - len(reachable))


def _is_dotted(folders: list[str], stem: str) -> bool:
    return stem.isidentifier() and all(folder.isidentifier() for folder in folders)


def ancestry(name: str) -> list[str]:
    """`a.b.c` as a, a.b and a.b.c."""
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
