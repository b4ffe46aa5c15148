"""Hold the state while a setup.py is followed: its names, the calls of setup() so far, and the steps taken."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pypi_assets.distributions.setup_values import (
    UNBOUND,
    UNKNOWN,
    FindPackages,
    Imported,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    is_data,
    spoil,
)

MAX_STEPS = 200_000
"""The maximum number of statements, expressions and items of lists that are visited. A longer script stays unknown."""
MAX_DEPTH = 120
"""The maximum nesting of statements and expressions, including function calls.

It is small enough that no interpreter reaches its own limit before, however deep its stack is at the start.
"""
TO_NAMESPACES = frozenset({"globals", "locals", "vars", "eval", "setattr", "delattr", "__builtins__"})
"""Functions that can change names without naming them."""
IMPORTING = frozenset({"__import__", "import_module"})
NAMESPACES = frozenset({"__dict__", "__globals__", "__builtins__", "__code__", "__closure__", "f_globals", "f_locals"})
"""Attributes that can change names without naming them."""
_HARMLESS_TEXT = (
    "sys os warnings logging socket ssl multiprocessing locale codecs time tempfile platform subprocess numpy np string"
)
_HARMLESS = frozenset(_HARMLESS_TEXT.split())
"""Modules whose attributes a script may set without an effect on setup()."""
_OF_INVOCATION = frozenset({"argv", "environ", "version_info"})
_NAMES = {"__name__": "__main__", "__file__": "setup.py"}


class TooLongError(Exception):
    """MAX_STEPS or MAX_DEPTH is exceeded."""


@dataclass(slots=True)
class ScriptState:
    """The names of a script, and of its running functions (`scopes`), with all other state.

    Containers are shared by reference, so that aliases agree. `uncertain` counts the branches and loops around the
    current statement, which may not be executed. `base` counts how many of them are around the call of the running
    function, which returns `result` or has `yielded` items. `by_version` counts branches that Python 3 takes. `walked`
    are the packages of the folder that a loop traverses: values that the loop adds to a list may be their names.
    `has_assumed` is True if an expression was decided by the environment of a plain build.

    Code that is not followed makes everything unknown that it can reach. `open_names` may be changed by code that runs
    at any time. `is_open` is True once code may have changed any name, or setup() itself. `written` are texts that the
    script may have put into sys.argv and os.environ, each with the name of its target. None stands for any text.
    """

    names: dict[str, Any] = field(default_factory=lambda: dict(_NAMES))
    calls: list[dict[Any, Any]] = field(default_factory=list)
    scopes: list[dict[str, Any]] = field(default_factory=list)
    uncertain: int = 0
    base: int = 0
    by_version: int = 0
    walked: FindPackages | None = None
    has_assumed: bool = False
    steps: int = 0
    depth: int = 0
    result: Any = None
    yielded: list[Any] = field(default_factory=list)
    open_names: set[str] = field(default_factory=set)
    is_open: bool = False
    written: set[tuple[str, str | None]] = field(default_factory=set)

    def spend(self, count: int = 1) -> None:
        """Count `count` steps. Raise TooLongError."""
        self.steps += count
        if self.steps > MAX_STEPS:
            raise TooLongError

    def enter(self) -> None:
        """Go one level deeper until `leave` is called. Raise TooLongError."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooLongError

    def leave(self) -> None:
        self.depth -= 1

    @property
    def scope(self) -> dict[str, Any]:
        return self.scopes[-1] if self.scopes else self.names

    def bind(self, name: str, value: object) -> None:
        if self.scope.get(name) is self.names:  # declared as global
            self.names[name] = UNKNOWN if self.uncertain else value
        else:
            self.scope[name] = value

    def look_up(self, name: str) -> Any:
        """Return the value of `name`, or UNBOUND if it has none."""
        value = self.scope.get(name, self.names) if self.scopes else self.names
        value = self.names.get(name, UNBOUND) if value is self.names else value
        return UNKNOWN if name in self.open_names and value is not UNBOUND and is_data(value) else value

    def reach(self, nodes: Iterable[ast.AST], *, later: bool = False) -> None:
        """Make unknown everything that `nodes`, which are not followed, can reach.

        These are the containers that they name, everything that named functions reach, and any name if they use
        globals() and the like. With `later` they may run at any time, so the names stay unknown.
        """
        waiting = list(nodes)
        local = {name for node in waiting for name in self._local_names(node)} if later else set()
        seen: set[int] = set()
        while waiting:
            node = waiting.pop()
            self.spend()
            waiting += ast.iter_child_nodes(node)
            match node:
                case ast.Name(id=name):
                    value = self.look_up(name)
                    self.is_open |= name in TO_NAMESPACES and value is UNBOUND
                    if isinstance(value, ScriptFunction | ScriptClass) and id(value.node) not in seen:
                        seen.add(id(value.node))
                        waiting.append(value.node)
                    self.spoil_value(value)
                    if later and name not in local:
                        self.open_names.add(name)
                case ast.Global(names=names) | ast.Nonlocal(names=names):
                    self.open_names.update(names)
                case ast.NamedExpr(target=ast.Name(id=name)) if not later:
                    self.bind(name, UNKNOWN)
                case ast.Attribute(value=owner, attr=attribute, ctx=context):
                    self.is_open |= attribute in NAMESPACES
                    if not isinstance(context, ast.Load):
                        self.set_attribute(owner, attribute)

    def _local_names(self, node: ast.AST) -> set[str]:
        """Return the local names of a function, which differ from outer names."""
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            return set()
        arguments = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        body = node.body if isinstance(node.body, list) else []
        return arguments | (self.names_bound_in(body) - _declared_outer(node))

    def spoil_value(self, value: Any) -> None:
        """Make the content of a container or of a followed module unknown."""
        spoil(value)
        if isinstance(value, ScriptModule):
            self.open_names_of(value.names)

    def open_names_of(self, names: dict[str, Any]) -> None:
        """Make all data bound in `names` unknown."""
        self.spend(len(names))
        for name, value in names.items():
            if is_data(value):
                spoil(value)
                names[name] = UNKNOWN

    def write(self, owner: Any, texts: Iterable[Any]) -> None:
        """Record that a script adds `texts` to `owner`, if that is sys.argv or os.environ."""
        if isinstance(owner, Imported) and owner.name in _OF_INVOCATION:
            self.written.update((owner.name, text if isinstance(text, str) else None) for text in texts)

    def is_written(self, name: str, text: str) -> bool:
        """Check whether a script may have added `text` to sys.argv or os.environ."""
        return not self.written.isdisjoint({(name, text), (name, None)})

    def set_attribute(self, owner: ast.expr, attribute: str) -> None:
        """Follow `owner.attribute = ...`, which may change setup() if the owner is an imported module or class."""
        self.write(Imported(attribute), [None])
        while isinstance(owner, ast.Attribute | ast.Subscript | ast.Call):
            called = owner.func if isinstance(owner, ast.Call) else None
            self.is_open |= isinstance(called, ast.Name | ast.Attribute) and _name_of(called) in IMPORTING
            owner = owner.func if isinstance(owner, ast.Call) else owner.value
        value = self.look_up(owner.id) if isinstance(owner, ast.Name) else UNKNOWN
        if value is UNBOUND and isinstance(owner, ast.Name) and owner.id == "__builtins__":
            value = Imported("builtins")
        if isinstance(value, Imported) and value.name.partition(".")[0] not in _HARMLESS:
            self.is_open |= not (value.name == "builtins" and attribute.startswith("__"))

    def _is_container(self, target: ast.expr) -> bool:
        return isinstance(target, ast.Name) and isinstance(self.look_up(target.id), list | dict)

    def spoil_called(self, node: ast.AST) -> None:
        """Make unknown everything that the calls in `node`, which are not followed, can reach."""
        for each in ast.walk(node):
            self.spend()
            if isinstance(each, ast.Call | ast.NamedExpr | ast.Lambda):
                self.reach([each], later=isinstance(each, ast.Lambda))

    def names_bound_in(self, statements: Iterable[ast.AST]) -> set[str]:
        """Return the names that `statements` bind. `+=` changes a list or dict in place and binds nothing."""
        names = set()
        waiting: list[ast.AST] = list(statements)
        while waiting:
            node = waiting.pop()
            self.spend()
            names.update(_bound_by(node))
            if isinstance(node, ast.AugAssign) and self._is_container(node.target):
                waiting.append(node.value)
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Constant):
                waiting += ast.iter_child_nodes(node)
        return names


def _bound_by(node: ast.AST) -> list[str]:
    """Return the names that a node of any kind binds itself, such as a target, a definition, an import or a pattern."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return [name]
        case ast.alias(name=name, asname=other):
            return [other or name.partition(".")[0]]
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
    bound = [getattr(node, field, None) for field in ("name", "rest")]
    return [name for name in bound if isinstance(name, str)]


def _name_of(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


def _declared_outer(node: ast.AST) -> set[str]:
    declared = [each.names for each in ast.walk(node) if isinstance(each, ast.Global | ast.Nonlocal)]
    return {name for names in declared for name in names}
