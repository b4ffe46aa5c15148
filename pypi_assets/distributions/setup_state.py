"""What is known while a setup.py is followed: its names, the calls of setup() so far, and the steps that it took."""

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from pypi_assets.distributions.setup_values import UNBOUND, UNKNOWN, FindPackages, spoil

MAX_STEPS = 200_000
"""Statements, expressions and items of lists that are looked at, at most: a longer script stays unknown."""
MAX_DEPTH = 120
"""How deep statements and expressions nest, also in functions that call each other: so little that no interpreter ends
before, wherever its own stack is when it begins."""
_NAMES = {"__name__": "__main__", "__file__": "setup.py"}


class TooLongError(Exception):
    """MAX_STEPS are done, or MAX_DEPTH is reached."""


@dataclass(slots=True)
class ScriptState:
    """The names of a script and of its functions that run (`scopes`). Containers are kept by reference, as Python does,
    so that aliases agree.

    `uncertain` counts the branches and loops around the current statement: what is done there may not be done. `base`
    counts those of them that are around the call of the function that runs, which returns `result` or has `yielded`
    items. `by_version` counts those that are taken on Python 3. `walked` are the packages of the folder that a loop
    around the statement walks through: what is put into a list there may be their names. `has_assumed` is whether an
    expression was decided by what the environment of a plain build is.
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

    def spend(self, count: int = 1) -> None:
        """Counts `count` steps. Raises TooLongError."""
        self.steps += count
        if self.steps > MAX_STEPS:
            raise TooLongError

    def enter(self) -> None:
        """Goes one level deeper, until `leave` is called. Raises TooLongError."""
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
        """The value of `name`, UNBOUND where it has none."""
        value = self.scope.get(name, self.names) if self.scopes else self.names
        return self.names.get(name, UNBOUND) if value is self.names else value

    def spoil_named(self, nodes: Iterable[ast.AST]) -> None:
        """Spoils all that `nodes`, which are not followed, name: they may change it."""
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            self.spend()
            if isinstance(node, ast.Name):
                spoil(self.look_up(node.id))
            waiting += ast.iter_child_nodes(node)

    def _is_container(self, target: ast.expr) -> bool:
        return isinstance(target, ast.Name) and isinstance(self.look_up(target.id), list | dict)

    def spoil_called(self, node: ast.AST) -> None:
        """Spoils what the calls in `node`, which are not followed, may change."""
        for each in ast.walk(node):
            self.spend()
            if isinstance(each, ast.Call):
                self.spoil_named([each])

    def names_bound_in(self, statements: Iterable[ast.stmt]) -> set[str]:
        """The names that `statements` bind. `+=` changes a list or dict in place, and binds nothing."""
        names = set()
        waiting: list[ast.AST] = list(statements)
        while waiting:
            node = waiting.pop()
            self.spend()
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.AugAssign) and self._is_container(node.target):
                waiting.append(node.value)
                continue
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
                continue
            elif isinstance(node, ast.alias):
                names.add(node.asname or node.name.partition(".")[0])
            elif isinstance(node, ast.Constant | ast.expr_context):
                continue
            waiting += ast.iter_child_nodes(node)
        return names
