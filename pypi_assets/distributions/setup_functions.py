"""Compute the results of functions and methods that a setup.py calls, such as os.path.join(), if they are known."""

import re
from collections.abc import Callable
from typing import Any

from pypi_assets.characters import is_digits
from pypi_assets.distributions.setup_operations import concatenated, extend, merged, set_item, update
from pypi_assets.distributions.setup_state import ScriptState
from pypi_assets.distributions.setup_values import (
    SCALARS,
    UNKNOWN,
    Assumed,
    Extension,
    Ffi,
    FileText,
    FindPackages,
    Maybe,
    OpenFile,
    as_text,
    is_texts,
    maybe,
    spoil,
)

_EXTENSIONS = frozenset({"Extension", "RustExtension", "Pybind11Extension", "CMakeExtension", "CppExtension"})


def _call_find(state: ScriptState, arguments: list[Any], keywords: dict[Any, Any], *, namespaces: bool = False) -> Any:
    values: dict[Any, Any] = {"where": ".", "exclude": (), "include": ("*",)}
    values |= dict(zip(values, arguments, strict=False)) | keywords
    where, exclude, include = values["where"], values["exclude"], values["include"]
    # A string in the place of a list is a common mistake. setuptools uses its letters as items.
    exclude, include = (tuple(each) if isinstance(each, str) else each for each in (exclude, include))
    if UNKNOWN in values or not isinstance(where, str) or not (is_texts(exclude) and is_texts(include)):
        return UNKNOWN
    state.spend(len(exclude) + len(include))
    folder = "/".join(part for part in where.replace("\\", "/").split("/") if part not in {"", "."})
    return [FindPackages(folder or ".", tuple(include), tuple(exclude), namespaces)]


def _call_find_namespace(state: ScriptState, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    return _call_find(state, arguments, keywords, namespaces=True)


def _call_extension(state: ScriptState, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    name = arguments[0] if arguments else keywords.get("name", keywords.get("target", UNKNOWN))
    sources = arguments[1] if len(arguments) > 1 else keywords.get("sources", ())
    if not isinstance(name, str):
        return UNKNOWN
    if isinstance(sources, list | tuple):
        state.spend(len(sources))
    name = name.replace("/", ".")  # as distutils reads it
    return Extension(name, tuple(sources) if is_texts(sources) else ())


def _call_cythonize(state: ScriptState, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    listed = arguments[0] if arguments else keywords.get("module_list", UNKNOWN)
    if isinstance(listed, Maybe) and isinstance(listed.value, list | tuple):
        listed = [maybe(item) for item in listed.value]
    listed = listed if isinstance(listed, list | tuple) else [listed]
    state.spend(len(listed))
    return [_unnamed_extension(item) for item in listed]


def _unnamed_extension(item: Any) -> Any:
    """Return the extension module, or several, that one item of cythonize()'s list stands for."""
    if isinstance(item, Maybe) and isinstance(item.value, str):
        return Maybe(Extension(None, (item.value,)))
    return Extension(None, (item,)) if isinstance(item, str) else item


def _call_join(state: ScriptState, arguments: list[Any], _: dict[Any, Any]) -> Any:
    """Compute os.path.join(), with `/` on every platform."""
    if not all(isinstance(argument, str) for argument in arguments):
        return UNKNOWN
    parts = [argument for argument in arguments if argument]
    return concatenated(state, [piece for part in parts for piece in ("/", part)][1:])


def _call_same(_: ScriptState, arguments: list[Any], __: dict[Any, Any]) -> Any:
    """Compute abspath, realpath and normpath. Paths stay relative to the folder of setup.py."""
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], str) else UNKNOWN


def _call_dirname(_: ScriptState, arguments: list[Any], __: dict[Any, Any]) -> Any:
    return arguments[0].rpartition("/")[0] if len(arguments) == 1 and isinstance(arguments[0], str) else UNKNOWN


def _call_getcwd(_: ScriptState, __: list[Any], ___: dict[Any, Any]) -> Any:
    return ""


def _call_list(state: ScriptState, arguments: list[Any], _: dict[Any, Any]) -> Any:
    if not arguments:
        return []
    if not isinstance(items := arguments[0], list | tuple | dict):
        return UNKNOWN
    state.spend(len(items))
    return list(items)


def _call_chain(state: ScriptState, arguments: list[Any], _: dict[Any, Any]) -> Any:
    """Compute itertools.chain()."""
    result: list[Any] = []
    for argument in arguments:
        extend(state, result, argument)
    return result


def _call_tuple(state: ScriptState, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    items = _call_list(state, arguments, keywords)
    return tuple(items) if isinstance(items, list) else items


def _call_set(state: ScriptState, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """Return the distinct items in their order."""
    items = _call_list(state, arguments, keywords)
    if not isinstance(items, list) or not all(isinstance(item, str | FindPackages | Maybe) for item in items):
        return UNKNOWN
    return list(dict.fromkeys(items))


def _call_sum(state: ScriptState, arguments: list[Any], _: dict[Any, Any]) -> Any:
    """Compute sum(lists, [])."""
    if len(arguments) != 2 or not isinstance(arguments[0], list | tuple):
        return UNKNOWN
    result = _call_list(state, arguments[1:], {})
    for items in arguments[0]:
        if not isinstance(items, list | tuple) or result is UNKNOWN:
            return UNKNOWN
        state.spend(len(items))
        result += items
    return result


def _call_dict(state: ScriptState, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """Compute dict() and OrderedDict()."""
    items = arguments[0] if len(arguments) == 1 else None
    if isinstance(items, list | tuple) and all(isinstance(item, tuple) and len(item) == 2 for item in items):
        state.spend(len(items))
        is_known = all(isinstance(key, str) for key, _ in items)
        return {**dict(items), **keywords} if is_known and UNKNOWN not in keywords else UNKNOWN
    return merged(state, [*arguments, keywords])


def _call_getenv(state: ScriptState, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """Compute os.getenv() and os.environ.get()."""
    default = arguments[1] if len(arguments) > 1 else keywords.get("default")
    is_known = isinstance(default, SCALARS) and bool(arguments) and isinstance(arguments[0], str)
    is_known = is_known and not state.is_written("environ", arguments[0])
    return Assumed(default) if is_known else UNKNOWN


def _call_bool(state: ScriptState, arguments: list[Any], __: dict[Any, Any]) -> Any:
    value = arguments[0] if len(arguments) == 1 else UNKNOWN
    if isinstance(value, Assumed):
        state.has_assumed = True
        return Maybe(bool(value.value))
    if isinstance(value, Maybe) and isinstance(value.value, bool):
        return value
    return bool(value) if isinstance(value, SCALARS) else UNKNOWN


def _call_int(_: ScriptState, arguments: list[Any], __: dict[Any, Any]) -> Any:
    value = arguments[0] if len(arguments) == 1 else UNKNOWN
    inner = value.value if isinstance(value, Assumed) else value
    if not isinstance(inner, int) and not (isinstance(inner, str) and is_digits(inner) and len(inner) < 10):
        return UNKNOWN
    return Assumed(int(inner)) if isinstance(value, Assumed) else int(inner)


def _call_compile(_: ScriptState, arguments: list[Any], __: dict[Any, Any]) -> Any:
    """Return the text of a file for compile(), whose result exec() gets."""
    return arguments[0] if arguments and isinstance(arguments[0], FileText) else UNKNOWN


def _call_ffi(_: ScriptState, __: list[Any], ___: dict[Any, Any]) -> Any:
    """Compute cffi.FFI()."""
    return Ffi()


FUNCTIONS: dict[str, Callable[[ScriptState, list[Any], dict[Any, Any]], Any]] = {
    "find_packages": _call_find,
    "find_namespace_packages": _call_find_namespace,
    **dict.fromkeys(_EXTENSIONS, _call_extension),
    "cythonize": _call_cythonize,
    "join": _call_join,
    **dict.fromkeys(("abspath", "realpath", "normpath"), _call_same),
    "dirname": _call_dirname,
    "getcwd": _call_getcwd,
    "list": _call_list,
    "chain": _call_chain,
    "tuple": _call_tuple,
    "set": _call_set,
    "frozenset": _call_set,
    "sorted": _call_list,
    "sum": _call_sum,
    **dict.fromkeys(("dict", "OrderedDict"), _call_dict),
    "getenv": _call_getenv,
    "bool": _call_bool,
    "int": _call_int,
    "compile": _call_compile,
    "FFI": _call_ffi,
}
"""Functions by name. Each gets the state of the script, the arguments and the keywords."""


_READING = frozenset({"index", "count", "copy", "get", "keys", "values", "items", "has_key", "__contains__", "__len__"})
"""Methods of lists and dicts that do not change them. All others may."""

_FIELD = re.compile(r"\{(\w*+)\}", re.ASCII)


def call_method(state: ScriptState, owner: Any, name: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """Return the result of `owner.name(*arguments, **keywords)`, and apply its changes to `owner`.

    An unsupported method spoils everything that it may change.
    """
    if isinstance(owner, Maybe):
        owner = owner.value
    if isinstance(owner, Assumed) and isinstance(owner.value, str):
        result = _text_method(state, owner.value, name, arguments, keywords)
        state.has_assumed |= isinstance(result, bool)
        return Assumed(result) if isinstance(result, str) else maybe(result) if isinstance(result, bool) else UNKNOWN
    if isinstance(owner, str):
        return _text_method(state, owner, name, arguments, keywords)
    if isinstance(owner, list):
        first = arguments[0] if len(arguments) == 1 else UNKNOWN
        if name == "append":
            extend(state, owner, [first])
        elif name == "extend":
            extend(state, owner, first)
        elif name == "copy" and not arguments:
            return list(owner)
        elif name not in _READING:
            spoil(owner)
            _spoil_all(arguments, keywords)
        return UNKNOWN
    if isinstance(owner, dict):
        return _dict_method(state, owner, name, arguments, keywords)
    if isinstance(owner, OpenFile | FileText) and name in {"read", "decode"}:
        return FileText(owner.path)
    if isinstance(owner, Ffi):
        return _ffi_method(owner, name, arguments, keywords)
    _spoil_all(arguments, keywords)
    return UNKNOWN


def _spoil_all(arguments: list[Any], keywords: dict[Any, Any]) -> None:
    """Spoil the arguments of an unsupported method, which may store them or pass them on."""
    for argument in (*arguments, *keywords.values()):
        spoil(argument)


def _ffi_method(owner: Ffi, name: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """Follow set_source(module, ...), which names the module, and distutils_extension(), which returns it."""
    if name == "set_source":
        module = arguments[0] if arguments else keywords.get("module_name")
        owner.module = module if isinstance(module, str) else None
    elif name == "distutils_extension" and owner.module is not None:
        return Extension(owner.module)
    return UNKNOWN


def _dict_method(
    state: ScriptState, owner: dict[Any, Any], name: str, arguments: list[Any], keywords: dict[Any, Any]
) -> Any:
    is_certain = UNKNOWN not in owner and not any(isinstance(value, Maybe) for value in owner.values())
    has_key = UNKNOWN not in owner and bool(arguments) and isinstance(arguments[0], str)
    if name == "update":
        update(state, owner, merged(state, [*arguments, keywords]))
    elif name in {"values", "keys"} and is_certain:
        return list(owner.values() if name == "values" else owner)
    elif name == "items" and is_certain:
        state.spend(len(owner))
        return list(owner.items())
    elif name == "get" and has_key:
        return owner.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
    elif name == "copy":
        return dict(owner)
    elif name == "setdefault" and has_key and len(arguments) == 2:
        if arguments[0] not in owner:
            set_item(state, owner, arguments[0], arguments[1])
        return owner[arguments[0]]
    elif name not in _READING or any(isinstance(value, list | dict) for value in owner.values()):
        spoil(owner)
        if name not in _READING:
            _spoil_all(arguments, keywords)
    return UNKNOWN


def _text_method(state: ScriptState, text: str, name: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    state.spend(len(text) // 100)
    if name == "join" and len(arguments) == 1 and isinstance(parts := arguments[0], list | tuple):
        joined = [piece for part in parts for piece in (text, part)][1:]
        return concatenated(state, joined)
    if name == "format":
        return _format(state, text, arguments, keywords)
    if not all(isinstance(argument, str | int | None) for argument in arguments) or keywords:
        return UNKNOWN
    match name, arguments:
        case (("split" | "rsplit"), [] | [None]):
            result: Any = text.split()
        case (("split" | "rsplit"), [str(separator)]) if separator:
            result = text.split(separator)
        case (("strip" | "lstrip" | "rstrip"), [] | [str()]):
            result = getattr(text, name)(*arguments)
        case (("startswith" | "endswith"), [str()]):
            return getattr(text, name)(*arguments)
        case ("splitlines", []):
            result = text.splitlines()
        case (("lower" | "upper" | "title"), []) if text.isascii():  # Python versions differ for other letters
            result = getattr(text, name)()
        case "replace", [str(old), str(new)] if old and len(new) <= len(old):
            result = text.replace(old, new)
        case _:
            return UNKNOWN
    state.spend(len(result) if isinstance(result, list) else 1)
    return result


def _format(state: ScriptState, template: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """Compute str.format() for {}, {0} and {name}."""
    state.spend(len(template) // 16)
    pieces = _FIELD.split(template)
    if any("{" in text or "}" in text for text in pieces[::2]):
        return UNKNOWN
    result: list[Any] = [pieces[0]]
    automatic = 0
    for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
        if name and not is_digits(name):
            value = keywords.get(name, UNKNOWN)
        else:
            index = int(name[:4]) if name else automatic
            automatic += 1
            value = arguments[index] if index < len(arguments) else UNKNOWN
        result += [as_text(value), text]
    return concatenated(state, result)
