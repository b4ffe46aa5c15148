"""The methods of texts, lists and dicts that a setup.py calls."""

import re
from typing import Any

from pypi_assets.characters import is_digits
from pypi_assets.distributions.setup_operations import concatenated, extend, merged, set_item, update
from pypi_assets.distributions.setup_state import ScriptState
from pypi_assets.distributions.setup_values import (
    UNKNOWN,
    Assumed,
    Extension,
    Ffi,
    FileText,
    Maybe,
    OpenFile,
    as_text,
    maybe,
    spoil,
)

_READING = frozenset({"index", "count", "copy", "get", "keys", "values", "items", "has_key", "__contains__", "__len__"})
"""Methods of lists and dicts that leave them as they are; all others may change them."""

_FIELD = re.compile(r"\{(\w*+)\}", re.ASCII)


def call_method(state: ScriptState, owner: Any, name: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """What `owner.name(*arguments, **keywords)` returns. It is done to `owner`, or spoils what it may change."""
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
    """Spoils what a method gets that is not followed: it may keep it, or hand it on."""
    for argument in (*arguments, *keywords.values()):
        spoil(argument)


def _ffi_method(owner: Ffi, name: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """set_source(module, ...) names the module, distutils_extension() is the extension module of that name."""
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
        case (("lower" | "upper" | "title"), []) if text.isascii():  # others have no letters that all Pythons agree on
            result = getattr(text, name)()
        case "replace", [str(old), str(new)] if old and len(new) <= len(old):
            result = text.replace(old, new)
        case _:
            return UNKNOWN
    state.spend(len(result) if isinstance(result, list) else 1)
    return result


def _format(state: ScriptState, template: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """str.format() with {}, {0} and {name} only."""
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
