"""What Python's operators make of the values of a setup.py. Each function counts its steps in the script's state."""

import ast
import re
from typing import Any

from pypi_assets.distributions.setup_state import ScriptState
from pypi_assets.distributions.setup_values import SCALARS, UNKNOWN, as_text, is_same_scalar, spoil

_CONVERSION = re.compile(r"%(?:\((\w+)\))?([sd%])", re.ASCII)


def set_item(state: ScriptState, container: Any, key: Any, value: Any) -> None:
    """`container[key] = value`"""
    if isinstance(container, dict) and isinstance(key, str):
        container[key] = UNKNOWN if state.uncertain else value
    else:
        spoil(container)


def extend(state: ScriptState, old: list[Any], new: Any) -> None:
    """`old += new` of a list."""
    if state.uncertain or not isinstance(new, list | tuple):
        spoil(old)
    else:
        state.spend(len(new))
        old += new


def update(state: ScriptState, old: dict[Any, Any], new: Any) -> None:
    """`old |= new` of a dict."""
    if not isinstance(new, dict):
        spoil(old)
        return
    state.spend(len(new) + len(old))
    if UNKNOWN in new:
        spoil(old)
    old |= dict.fromkeys(new, UNKNOWN) if state.uncertain else new


def join(state: ScriptState, result: dict[Any, Any], value: Any) -> None:
    """Adds `value` to a `result` to which the script has no other reference."""
    if not isinstance(value, dict) or UNKNOWN in value:
        spoil(result)
    if isinstance(value, dict):
        state.spend(len(value))
        result |= value


def merged(state: ScriptState, values: list[Any]) -> dict[Any, Any]:
    """A new dict of all `values`."""
    result: dict[Any, Any] = {}
    for value in values:
        join(state, result, value)
    return result


def add(state: ScriptState, left: Any, right: Any) -> Any:
    """`left + right` of texts, lists and tuples."""
    if isinstance(left, str) and isinstance(right, str):
        return concatenated(state, [left, right])
    if isinstance(left, list | tuple) and type(left) is type(right):
        state.spend(len(left) + len(right))
        return type(left)([*left, *right])
    return UNKNOWN


def is_same(state: ScriptState, one: Any, other: Any) -> bool:
    """Whether two values are known and equal. Of containers only the scalars right in them are compared."""
    if one is other:
        return True
    if isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other):
        state.spend(len(one))
        return all(map(is_same_scalar, one, other))
    return is_same_scalar(one, other)


def compared(state: ScriptState, left: Any, operator: ast.cmpop, right: Any) -> Any:
    """`left == right` and the like, True or False where both sides are known."""
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
            case ast.In() if all(isinstance(item, SCALARS) for item in right):
                return left in right
            case ast.NotIn() if all(isinstance(item, SCALARS) for item in right):
                return left not in right
    return UNKNOWN


def item_of(state: ScriptState, container: Any, key: Any) -> Any:
    """`container[key]`"""
    if isinstance(container, dict):
        return container.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
    if not isinstance(container, str | list | tuple) or not isinstance(key, int):
        return UNKNOWN
    state.spend(len(container) // 16)
    known = isinstance(container, str) or UNKNOWN not in container
    return container[key] if known and -len(container) <= key < len(container) else UNKNOWN


def concatenated(state: ScriptState, parts: list[Any]) -> Any:
    """One text of `parts`, UNKNOWN unless all of them are texts."""
    if not all(isinstance(part, str) for part in parts):
        return UNKNOWN
    state.spend(sum(map(len, parts)) // 100)
    return "".join(parts)


def percent(state: ScriptState, template: Any, values: Any) -> Any:
    """`template % values` with %s, %d and %(name)s only: widths could make gigabytes."""
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
