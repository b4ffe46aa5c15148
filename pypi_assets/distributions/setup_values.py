"""Define the values that a setup.py can have for its reader: literals, and markers for all other values."""

import ast
from dataclasses import dataclass, field
from typing import Any

import msgspec


class FindPackages(msgspec.Struct, frozen=True, array_like=True):
    """A call of find_packages(), or of find_namespace_packages() with `namespaces`.

    `where` is "." for the top. `is_guess` is True if the script traverses a folder itself and may skip some of its
    packages. `prefix` precedes each name.
    """

    where: str = "."
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    namespaces: bool = False
    is_guess: bool = False
    prefix: str = ""


UNKNOWN: Any = object()
"""A value that is not literal. As a key of a dict, it stands for any other keys."""
UNBOUND: Any = object()
"""The value of a name that is not bound."""
ASSUMED: Any = object()
"""A key among the arguments of setup() if the environment decided a condition before the call."""
COPIED: Any = object()
"""A key among the arguments of setup() for the folders that the script's commands copy."""
SCALARS = str | int | float | None


@dataclass(frozen=True, slots=True, eq=False)
class Maybe:
    """A value that depends on a condition: an item of a list, or a value of a dict, that may be missing.

    With True or False as its `value`, it is a condition with this result on Python 3.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class Assumed:
    """A value that an environment variable decides. `value` is the one if no variable is set, as in a plain build."""

    value: str | int | float | None


@dataclass(frozen=True, slots=True)
class Walk:
    """An os.walk() of a known folder."""

    folder: str


@dataclass(frozen=True, slots=True)
class Extension:
    """A call of Extension("name", ...), or an item of cythonize(). The name of an item is "*" or missing."""

    name: str | None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Imported:
    """The object that an import statement binds, by its original name."""

    name: str


@dataclass(slots=True)
class ScriptFunction:
    """A function of the script, or of a file that it imports or runs.

    `names` are its globals, and `defaults` the values of parameters that a call has omitted. With `is_handed_on`, it
    may be called at any time.
    """

    node: ast.FunctionDef
    names: dict[str, Any]
    is_generator: bool = False
    is_running: bool = False
    is_handed_on: bool = False
    defaults: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class ScriptClass:
    """A class of the script, or of a file that it imports or runs. `names` are its globals."""

    node: ast.ClassDef
    names: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class ScriptModule:
    """A file that the script imports, with the names that it binds."""

    names: dict[str, Any]


@dataclass(frozen=True, slots=True)
class OpenFile:
    """The result of open() for a file that can be followed."""

    path: str


@dataclass(frozen=True, slots=True)
class FileText:
    """The content of a file that can be followed, as text or compiled."""

    path: str


@dataclass(slots=True, eq=False)
class Ffi:
    """A builder of cffi, and the name of its module if set_source() got a known one."""

    module: str | None = None


_HOLDING = (list, dict, tuple, Maybe)


def spoil(container: Any) -> None:
    """Mark a list or dict, and everything in it, as changed in an unknown way."""
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
    """Return `value` as Maybe, unless it is UNKNOWN or Maybe already."""
    return value if value is UNKNOWN or isinstance(value, Maybe) else Maybe(value)


def is_data(value: Any) -> bool:
    """Check whether `value` is not a function, class or module."""
    return not isinstance(value, Imported | ScriptFunction | ScriptClass | ScriptModule)


def is_same_scalar(one: Any, other: Any) -> bool:
    """Check whether two values are known, of the same type and equal. Containers are never the same."""
    return (
        type(one) is type(other)
        and isinstance(one, str | int | float | None | FindPackages | Imported)
        and one == other
    )


def is_encodable(text: str) -> bool:
    """Check whether `text` has no half of a surrogate pair. A literal can contain one, but a file cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(value: Any) -> Any:
    """Return the result of %s for `value`. Packages stay as they are.

    Numbers with many digits are UNKNOWN, since str() rejects numbers with thousands of digits.
    """
    if isinstance(value, FindPackages):
        return value
    return str(value) if isinstance(value, str) or (isinstance(value, int) and abs(value) < 1 << 62) else UNKNOWN


def is_texts(value: Any) -> bool:
    """Check whether `value` is a list or tuple that contains only texts."""
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
