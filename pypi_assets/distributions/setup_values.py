"""The values of a setup.py as far as they are literal, and what stands for all others."""

import ast
from dataclasses import dataclass, field
from typing import Any

import msgspec


class FindPackages(msgspec.Struct, frozen=True, array_like=True):
    """A call of find_packages(), or of find_namespace_packages() where `namespaces`; `where` "." is the top. Where it
    `is_guess`, the script walks through a folder, and may leave out some of its packages. `prefix` comes before each of
    the names."""

    where: str = "."
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    namespaces: bool = False
    is_guess: bool = False
    prefix: str = ""


UNKNOWN: Any = object()
"""What is not literal. Also the key of a dict that may have any other key."""
UNBOUND: Any = object()
"""The value of a name that nothing binds."""
ASSUMED: Any = object()
"""A key among the arguments of setup() where the environment decided on the way to it."""
COPIED: Any = object()
"""A key among the arguments of setup() for the folders that the script's commands copy."""
SCALARS = str | int | float | None


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """What depends on a condition: an item of a list, or the value of a key of a dict, that may be missing. Where
    `value` is True or False, it is a condition that holds, or does not, on Python 3."""

    value: Any


@dataclass(frozen=True, slots=True)
class Assumed:
    """What a variable of the environment decides: the value that it has where none is set, as in a plain build."""

    value: str | int | float | None


@dataclass(frozen=True, slots=True)
class Walk:
    """os.walk() of a folder that is known."""

    folder: str


@dataclass(frozen=True, slots=True)
class Extension:
    """Extension("name", ...), or an item of cythonize(), whose name is "*" or missing."""

    name: str | None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import statement binds, by its own name."""

    name: str


@dataclass(slots=True)
class ScriptFunction:
    """A function of the script, or of a file that it imports or runs; `names` are the globals of it, `defaults` the
    values of parameters that a call has left out. One that `is_handed_on` may be called at any time."""

    node: ast.FunctionDef
    names: dict[str, Any]
    is_generator: bool = False
    is_running: bool = False
    is_handed_on: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class ScriptClass:
    """A class of the script, or of a file that it imports or runs; `names` are the globals of it."""

    node: ast.ClassDef
    names: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class ScriptModule:
    """A file that the script imports, by the names that it binds."""

    names: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OpenFile:
    """What open() returns for a file that can be followed."""

    path: str


@dataclass(frozen=True, slots=True)
class FileText:
    """What a file that can be followed contains, read or compiled."""

    path: str


@dataclass(slots=True, eq=False)
class Ffi:
    """A builder of cffi, and the name of the module that it builds, as far as set_source() got one that is known."""

    module: str | None = None


_HOLDING = (list, dict, tuple, Maybe)


def spoil(container: Any) -> None:
    """Records in a list or dict, and in all that it holds, that something unknown has been done to it."""
    waiting = [container]
    tuples: set[int] = set()
    while waiting:
        each = waiting.pop()
        if isinstance(each, Maybe):
            waiting.append(each.value)
        elif isinstance(each, list):
            waiting += [item for item in each if isinstance(item, _HOLDING)]
            each[:] = [UNKNOWN]
        elif isinstance(each, dict):
            waiting += [item for item in each.values() if isinstance(item, _HOLDING)]
            each.clear()
            each[UNKNOWN] = UNKNOWN
        elif isinstance(each, tuple) and id(each) not in tuples:
            tuples.add(id(each))
            waiting += [item for item in each if isinstance(item, _HOLDING)]


def maybe(value: Any) -> Any:
    """`value` as one that may be missing."""
    return value if value is UNKNOWN or isinstance(value, Maybe) else Maybe(value)


def is_data(value: Any) -> bool:
    """Whether `value` is no function, class or module."""
    return not isinstance(value, Imported | ScriptFunction | ScriptClass | ScriptModule)


def is_same_scalar(one: Any, other: Any) -> bool:
    """Whether two values are known, of one type and equal; False for containers."""
    return (
        type(one) is type(other)
        and isinstance(one, str | int | float | None | FindPackages | Imported)
        and one == other
    )


def is_encodable(text: str) -> bool:
    """Whether `text` has no half of a surrogate pair, which a literal can name, but no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(value: Any) -> Any:
    """What %s makes of `value`; a number of thousands of digits is refused by str() itself. Packages stay what they
    are."""
    if isinstance(value, FindPackages):
        return value
    return str(value) if isinstance(value, str) or (isinstance(value, int) and abs(value) < 1 << 62) else UNKNOWN


def is_texts(value: Any) -> bool:
    """Whether `value` is a list or tuple of nothing but texts."""
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
