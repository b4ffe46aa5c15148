"""Apply Python's operators to the values of a setup.py. Each function counts its steps in the script's state."""

import ast
import re
from typing import Any

from msgspec.structs import replace

from pypi_assets.distributions.setup_state import ScriptState
from pypi_assets.distributions.setup_values import (
    SCALARS,
    UNKNOWN,
    Assumed,
    FindPackages,
    Imported,
    Maybe,
    as_text,
    is_same_scalar,
    maybe,
    spoil,
)

_CONVERSION = re.compile(r"%(?:\((\w++)\))?([sd%])", re.ASCII)


def set_item(state: ScriptState, container: Any, key: Any, value: Any) -> None:
    """Follow `container[key] = value`."""
    if isinstance(container, Imported):
        state.write(container, [key if container.name == "environ" else value])
    elif isinstance(container, dict) and isinstance(key, str):
        if state.uncertain:
            value = one_of(state, [container[key], value]) if key in container else maybe(value)
        container[key] = value
    else:
        spoil(container)


def extend(state: ScriptState, old: list[Any], new: Any) -> None:
    """Follow `old += new` for a list. For an unknown value, the known items stay, and UNKNOWN is added."""
    is_certain = not state.uncertain and not isinstance(new, Maybe)
    new = new.value if isinstance(new, Maybe) else new
    items = new if isinstance(new, list | tuple) else [UNKNOWN]
    state.spend(len(items))
    if state.walked:
        items = [state.walked if item is UNKNOWN else item for item in items]
    old += items if is_certain else [maybe(item) for item in items]


def update(state: ScriptState, old: dict[Any, Any], new: Any) -> None:
    """Follow `old |= new` for a dict."""
    if not isinstance(new, dict):
        spoil(old)
        return
    state.spend(len(new) + len(old))
    if UNKNOWN in new:
        spoil(old)
    if not state.uncertain:
        old |= new
    elif UNKNOWN not in new:
        for key, value in new.items():
            set_item(state, old, key, value)


def one_of(state: ScriptState, values: list[Any], depth: int = 3) -> Any:
    """Return one value for a choice of `values`.

    Items of lists and values of dicts that only some of the values have become Maybe. None counts as an empty
    container.
    """
    first = values[0]
    if all(is_same(state, first, other) for other in values[1:]):
        return first
    state.spend(len(values))
    if all(isinstance(value, Imported) and value.name.endswith("Extension") for value in values):
        return first  # each of these classes creates a module of the given name
    filled = [value.value if isinstance(value, Maybe) else value for value in values if value is not None]
    if filled and depth and all(isinstance(value, list | tuple) for value in filled):
        return _items_of_any(state, [value if isinstance(value, list | tuple) else () for value in values])
    if filled and depth and all(isinstance(value, dict) for value in filled):
        return _keys_of_any(state, [value if isinstance(value, dict) else {} for value in values], depth)
    return Maybe(filled[0]) if len(filled) == 1 and filled[0] is not UNKNOWN else UNKNOWN


def _items_of_any(state: ScriptState, lists: list[list[Any] | tuple[Any, ...]]) -> list[Any]:
    """Return the common first items of all `lists`, followed by all other items as Maybe."""
    shortest = min(map(len, lists))
    state.spend(sum(map(len, lists)) + shortest * len(lists))
    same = 0
    while same < shortest and all(_is_identical(lists[0][same], other[same]) for other in lists):
        same += 1
    rest: list[Any] = []
    for items in lists:
        for item in items[same:]:
            state.spend(len(rest))
            if not any(_is_identical(item, kept.value if isinstance(kept, Maybe) else kept) for kept in rest):
                rest.append(maybe(item))
    return [*lists[0][:same], *rest]


def _is_identical(one: Any, other: Any) -> bool:
    return one is other or is_same_scalar(one, other)


def _keys_of_any(state: ScriptState, dicts: list[dict[Any, Any]], depth: int) -> dict[Any, Any]:
    result: dict[Any, Any] = {}
    for key in dict.fromkeys(key for each in dicts for key in each):
        values = [each[key] for each in dicts if key in each]
        value = one_of(state, values, depth - 1)
        result[key] = value if len(values) == len(dicts) else maybe(value)
    return result


def join(state: ScriptState, result: dict[Any, Any], value: Any) -> None:
    """Add `value` to a `result` that the script does not refer to elsewhere."""
    if isinstance(value, Maybe) and isinstance(value.value, dict):
        value = {key: maybe(each) for key, each in value.value.items()}
    if not isinstance(value, dict) or UNKNOWN in value:
        spoil(result)
    if isinstance(value, dict):
        state.spend(len(value))
        result |= value


def merged(state: ScriptState, values: list[Any]) -> dict[Any, Any]:
    """Return a new dict with all `values`."""
    result: dict[Any, Any] = {}
    for value in values:
        join(state, result, value)
    return result


def add(state: ScriptState, left: Any, right: Any) -> Any:
    """Return `left + right` for texts, lists and tuples."""
    if isinstance(left, str) and isinstance(right, str | FindPackages):
        return concatenated(state, [left, right])
    if isinstance(left, list) and isinstance(right, Maybe) and isinstance(right.value, list):
        right = [maybe(item) for item in right.value]
    if isinstance(left, list | tuple) and type(left) is type(right):
        state.spend(len(left) + len(right))
        return type(left)([*left, *right])
    return UNKNOWN


def is_same(state: ScriptState, one: Any, other: Any) -> bool:
    """Check whether two values are known and equal. For containers, only scalars directly in them are compared."""
    if one is other:
        return True
    if isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other):
        state.spend(len(one))
        return all(map(is_same_scalar, one, other))
    return is_same_scalar(one, other)


def compared(state: ScriptState, left: Any, operator: ast.cmpop, right: Any) -> Any:
    """Return the result of `left == right` and other comparisons if both sides are known, or UNKNOWN."""
    if isinstance(left, Imported):
        is_known = ("version_info", None) not in state.written
        return _compared_version(left.name, operator, right) if is_known else UNKNOWN
    if isinstance(left, Assumed) or (isinstance(left, Maybe) and isinstance(left.value, bool)):
        state.has_assumed |= isinstance(left, Assumed)
        return maybe(compared(state, left.value, operator, right))
    if isinstance(right, Imported):
        if isinstance(left, str) and state.is_written(right.name, left):
            return UNKNOWN
        result = _is_in_invocation(left, operator, right.name)
        state.has_assumed |= result is not UNKNOWN
        return result
    scalar = isinstance(left, str | int | None)
    if scalar and isinstance(right, str | int | None):
        match operator:
            case ast.Eq() | ast.Is():
                return left == right
            case ast.NotEq() | ast.IsNot():
                return left != right
    if scalar and isinstance(right, list | tuple | dict):
        state.spend(len(right))
        match operator:
            case ast.In() if _has_known_items(left, right):
                return left in right
            case ast.NotIn() if _has_known_items(left, right):
                return left not in right
    return UNKNOWN


def _has_known_items(item: Any, container: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> bool:
    if isinstance(container, dict) and isinstance(container.get(item), Maybe):
        return False
    return all(isinstance(each, SCALARS) for each in container)


def _is_in_invocation(text: Any, operator: ast.cmpop, name: str) -> Any:
    """Return the result of `text in os.environ` or `text in sys.argv` for a build of a wheel without set variables."""
    is_known = isinstance(text, str) and name in {"environ", "argv"} and isinstance(operator, ast.In | ast.NotIn)
    is_there = name == "argv" and text == "bdist_wheel"
    return Maybe(is_there is isinstance(operator, ast.In)) if is_known else UNKNOWN


_ORDERED: dict[type[ast.cmpop], tuple[bool, bool]] = {
    ast.Lt: (True, False),
    ast.LtE: (True, False),
    ast.Gt: (False, True),
    ast.GtE: (False, True),
    ast.Eq: (False, False),
    ast.NotEq: (True, True),
}
"""The result of a comparison if its left side is less than its right side, and if it is greater."""


def _compared_version(name: str, operator: ast.cmpop, right: Any) -> Any:
    """Return the result of comparisons such as `sys.version_info >= (3,)`.

    It is Maybe(True) or Maybe(False) if all versions of Python 3 agree, and UNKNOWN otherwise.
    """
    if type(operator) not in _ORDERED:
        return UNKNOWN
    if_less, if_greater = _ORDERED[type(operator)]
    if name == "version_info[0]" and isinstance(right, int):
        same = isinstance(operator, ast.Eq | ast.LtE | ast.GtE)
        return Maybe(same if right == 3 else if_less if right > 3 else if_greater)
    if name != "version_info" or not isinstance(right, tuple) or not right or not isinstance(right[0], int):
        return UNKNOWN
    if isinstance(operator, ast.Eq | ast.NotEq) and right[0] == 3:
        return UNKNOWN
    if right[0] != 3:
        return Maybe(if_less if right[0] > 3 else if_greater)
    return Maybe(if_greater) if all(part == 0 for part in right[1:]) else UNKNOWN


def item_of(state: ScriptState, container: Any, key: Any) -> Any:
    """Return the value of `container[key]`."""
    if isinstance(container, dict):
        return container.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
    if not isinstance(container, str | list | tuple) or not isinstance(key, int):
        return UNKNOWN
    state.spend(len(container) // 16)
    known = isinstance(container, str) or not any(item is UNKNOWN or isinstance(item, Maybe) for item in container)
    return container[key] if known and -len(container) <= key < len(container) else UNKNOWN


def concatenated(state: ScriptState, parts: list[Any]) -> Any:
    """Return the concatenated `parts`, or UNKNOWN if one of them is not a text.

    The last part may be packages, which then get the other parts as a prefix.
    """
    while parts and parts[-1] == "":
        parts = parts[:-1]
    if parts and isinstance(parts[-1], FindPackages):
        prefix = concatenated(state, [*parts[:-1], parts[-1].prefix])
        return UNKNOWN if prefix is UNKNOWN else replace(parts[-1], prefix=prefix)
    if not all(isinstance(part, str) for part in parts):
        return UNKNOWN
    state.spend(sum(map(len, parts)) // 100)
    return "".join(parts)


def percent(state: ScriptState, template: Any, values: Any) -> Any:
    """Return `template % values` for %s, %d and %(name)s. Widths are not supported: they could create huge texts."""
    if not isinstance(template, str):
        return UNKNOWN
    state.spend(len(template) // 16)
    pieces = _CONVERSION.split(template)
    if any("%" in text for text in pieces[::3]):
        return UNKNOWN
    waiting = iter(values if isinstance(values, tuple) else (values,))
    result: list[Any] = [pieces[0]]
    for name, kind, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        if kind == "%":
            result.append("%")
        elif name:
            result.append(as_text(values.get(name, UNKNOWN) if isinstance(values, dict) else UNKNOWN))
        else:
            result.append(as_text(next(waiting, UNKNOWN)))
        result.append(text)
    return concatenated(state, result)
