"""Follow the statements of a setup.py, as syntax, to its calls of setup(), and return their literal arguments.

Nothing is run. Statements in a branch, a loop or a handler may not be executed, so values that they would change become
UNKNOWN.
"""

import ast
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pypi_assets.distributions.build_scripts import MAX_WRITTEN_LENGTH, BuildScripts
from pypi_assets.distributions.setup_expressions import FINDERS, FINDERS_FROM, Expressions, packages_in
from pypi_assets.distributions.setup_modules import ReturnedError
from pypi_assets.distributions.setup_operations import add, extend, item_of, one_of, set_item, update
from pypi_assets.distributions.setup_values import (
    UNBOUND,
    UNKNOWN,
    Imported,
    Maybe,
    OpenFile,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    Walk,
    is_data,
    maybe,
    spoil,
)

MAX_ROUNDS = 500
"""The maximum number of items that a loop runs for. Real lists of extension modules have up to a few hundred."""
_LIBRARIES_TEXT = "setuptools distutils os sys glob re io shutil subprocess platform numpy Cython skbuild pkg_resources"
_LIBRARIES = frozenset(_LIBRARIES_TEXT.split())
"""Modules whose `from ... import *` binds none of a script's own names."""
_WITH_SETUP = frozenset({"setuptools", "distutils", "numpy", "skbuild", "paver", "scikits"})
"""Modules whose setup() is setuptools' setup() or calls it with the same arguments."""
_OWN_NAMES = frozenset(
    {*FINDERS, "list", "dict", "set", "frozenset", "tuple", "sorted", "sum", "bool", "int", "str", "len"}
)
"""Names of setuptools or Python itself. If another module exports one of them, it is something else."""
_ENDS = frozenset({"exit", "_exit", "quit", "abort"})


def setup_calls(tree: ast.Module, files: BuildScripts) -> list[dict[Any, Any]]:
    """Return the arguments of each call of setup(), by name.

    UNKNOWN as a name stands for any other arguments. ASSUMED is a key if the environment decided a condition before the
    call. Files of `files` that the script imports or runs are followed, too. Raise TooLongError.
    """
    script = _Script(files=files)
    with suppress(ReturnedError):  # a return outside of a function
        script.run(tree.body)
    return script.calls


@dataclass(slots=True)
class _Script(Expressions):
    """Follows the statements of a script. _STATEMENTS names the method for each kind of statement."""

    def run(self, statements: Iterable[ast.stmt]) -> None:
        self.enter()
        for statement in statements:
            self.spend()
            _STATEMENTS.get(type(statement), _Script.run_unfollowed)(self, statement)
        self.leave()

    def run_unfollowed(self, statement: ast.stmt) -> None:
        """Handle a statement of an unsupported kind, which may change everything that it can reach."""
        self.reach([statement], later=isinstance(statement, ast.AsyncFunctionDef))
        for name in self.names_bound_in([statement]):
            self.bind(name, UNKNOWN)

    def run_expression(self, statement: ast.Expr) -> None:
        self.value(statement.value)

    def run_assignment(self, statement: ast.Assign) -> None:
        result = self.value(statement.value)
        for target in statement.targets:
            self.assign(target, result)

    def run_annotated_assignment(self, statement: ast.AnnAssign) -> None:
        if statement.value is None:
            self.run_unfollowed(statement)
        else:
            self.spoil_called(statement.annotation)
            self.assign(statement.target, self.value(statement.value))

    def run_augmented_assignment(self, statement: ast.AugAssign) -> None:
        match statement:
            case ast.AugAssign(target=ast.Name(id=name), op=operator, value=value):
                old, new = self.look_up(name), self.value(value)
                if isinstance(old, Maybe) and isinstance(old.value, list | dict):
                    old = old.value
                if isinstance(old, dict):
                    update(self, old, new if isinstance(operator, ast.BitOr) else UNKNOWN)
                elif isinstance(old, list):
                    extend(self, old, new if isinstance(operator, ast.Add) else UNKNOWN)
                else:
                    self.bind(name, add(self, old, new) if isinstance(operator, ast.Add) else UNKNOWN)
            case ast.AugAssign(target=ast.Subscript(value=container, slice=key), op=operator, value=value):
                old, new = item_of(self, self.value(container), self.value(key)), self.value(value)
                old = old.value if isinstance(old, Maybe) and isinstance(old.value, list) else old
                if isinstance(old, list):
                    extend(self, old, new if isinstance(operator, ast.Add) else UNKNOWN)
                else:
                    added = add(self, old, new) if isinstance(operator, ast.Add) else UNKNOWN
                    set_item(self, self.value(container), self.value(key), added)
            case _:
                self.reach([statement])

    def run_if(self, statement: ast.If) -> None:
        test = self.condition(statement.test)
        truth = self.truth_of(test)
        if isinstance(test, Maybe) and isinstance(test.value, bool):
            self._branch_by_version(*([statement.body, statement.orelse][:: 1 if test.value else -1]))
        elif truth is None:
            self._branch([statement.body, statement.orelse])
        else:
            self.run(statement.body if truth else statement.orelse)

    def run_try(self, statement: ast.Try) -> None:
        if statement.handlers and statement.body and _takes_option(statement.body[0]):
            self.has_assumed = True
            self.run([*statement.handlers[0].body, *statement.finalbody])
            return
        self.scope.update({handler.name: UNKNOWN for handler in statement.handlers if handler.name})
        handled = [handler.body for handler in statement.handlers]
        changing = self._bound_again(statement.body) if handled else []
        self._branch([[*statement.body, *statement.orelse], *([*changing, *body] for body in handled)])
        self.run(statement.finalbody)

    def _bound_again(self, statements: list[ast.stmt]) -> list[ast.stmt]:
        """Return statements that make names unknown which `statements` bind more than once.

        A handler may run after any of these statements.
        """
        seen: set[str] = set()
        again: dict[str, ast.Name] = {}
        for statement in statements:
            for node in ast.walk(statement):
                self.spend()
                if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                    if node.id in seen:
                        again[node.id] = node
                    seen.add(node.id)
        return [ast.Delete([node]) for node in again.values()]

    def run_with(self, statement: ast.With) -> None:
        for item in statement.items:
            opened = self.value(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, opened if isinstance(opened, OpenFile) else UNKNOWN)
        if all(_is_open(item.context_expr) for item in statement.items):
            self.run(statement.body)
        else:
            self._branch([statement.body, []])  # it may continue after an exception, as suppress() does

    def run_loop(self, statement: ast.For | ast.While) -> None:
        """Run the body for each item of a short known list.

        Otherwise run it once for its calls and changes. Names that it binds are then unknown, even in the first round.
        """
        values = self.value(statement.iter) if isinstance(statement, ast.For) else UNKNOWN
        if isinstance(statement, ast.While):
            self.condition(statement.test)
        if isinstance(statement, ast.For) and isinstance(values, list | tuple) and len(values) <= MAX_ROUNDS:
            self._run_rounds(statement, [*values])
            return
        unknown = dict.fromkeys(self.names_bound_in([statement]), UNKNOWN)
        self.scope.update(unknown)
        if isinstance(statement, ast.For) and not isinstance(statement.target, ast.Name):
            self.assign(statement.target, UNKNOWN)
        outer = self.walked
        self.walked = packages_in(values) if isinstance(values, Walk) else outer
        self.uncertain += 1
        self.run([*statement.body, *statement.orelse])
        self.uncertain -= 1
        self.walked = outer
        self.scope.update(unknown)

    def _run_rounds(self, statement: ast.For, values: list[Any]) -> None:
        """Run the body for each of `values`. If it can end early, its effects are uncertain."""
        can_end = self._ends_early(statement.body)
        bound = self.names_bound_in([statement])
        for value in values:
            uncertain = can_end or value is UNKNOWN or isinstance(value, Maybe)
            self.uncertain += uncertain
            self.assign(statement.target, value.value if isinstance(value, Maybe) else value)
            self.run(statement.body)
            self.uncertain -= uncertain
        if can_end or any(value is UNKNOWN or isinstance(value, Maybe) for value in values):
            self.scope.update(dict.fromkeys(bound, UNKNOWN))
        self.run(statement.orelse)

    def _ends_early(self, statements: list[ast.stmt]) -> bool:
        """Check whether `statements` contain a break, continue or return at any depth, or a match statement."""
        waiting: list[ast.AST] = [*statements]
        while waiting:
            node = waiting.pop()
            self.spend()
            if isinstance(node, ast.Break | ast.Continue | ast.Return | ast.Match):
                return True
            if isinstance(node, ast.stmt | ast.ExceptHandler):
                waiting += ast.iter_child_nodes(node)
        return False

    def run_function_definition(self, statement: ast.FunctionDef) -> None:
        function = ScriptFunction(statement, self.names, self._yields(statement.body))
        self._decorate(statement.decorator_list)
        for node in (statement.args, statement.returns):  # defaults and annotations
            if node is not None:
                self.spoil_called(node)
        if statement.decorator_list or self.scopes:  # it may run under any name, or change names of an outer function
            self.reach([statement], later=True)
        self.bind(statement.name, function)

    def _decorate(self, decorators: list[ast.expr]) -> None:
        """Call decorators. Functions of the script are followed."""
        for decorator in decorators:
            function = self.look_up(decorator.id) if isinstance(decorator, ast.Name) else self.value(decorator)
            if isinstance(function, ScriptFunction):
                self.call_function(function, [UNKNOWN], {})

    def _yields(self, statements: list[ast.stmt]) -> bool:
        """Check whether a function with these statements is a generator."""
        waiting: list[ast.AST] = [*statements]
        while waiting:
            node = waiting.pop()
            self.spend()
            if isinstance(node, ast.Yield | ast.YieldFrom):
                return True
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
                waiting += ast.iter_child_nodes(node)
        return False

    def run_class_definition(self, statement: ast.ClassDef) -> None:
        self._decorate(statement.decorator_list)
        for node in (*statement.bases, *(keyword.value for keyword in statement.keywords)):
            above = self.value(node)
            if isinstance(above, ScriptClass):
                self.reach([above.node], later=True)
            else:  # the base may call methods when the class is created, as enum.Enum does
                self.reach([each for each in statement.body if _is_special(each)], later=True)
        for each in statement.body:
            run_now = [each.args, *each.decorator_list] if isinstance(each, ast.FunctionDef) else [each]
            self.reach(run_now)
        if statement.decorator_list or statement.keywords:
            self.reach([statement], later=True)
        self.bind(statement.name, ScriptClass(statement, self.names))

    def run_import(self, statement: ast.Import) -> None:
        for alias in statement.names:
            bound = alias.asname or alias.name.partition(".")[0]
            name = alias.name if alias.asname else bound
            self.is_open |= alias.name == "__main__"
            self.bind(bound, (self.module(name) if name == alias.name else None) or Imported(name))

    def run_import_from(self, statement: ast.ImportFrom) -> None:
        source = "" if statement.level else statement.module or ""
        prefix = f"{source}." if len(source) <= MAX_WRITTEN_LENGTH else ""
        is_known = source.partition(".")[0] in FINDERS_FROM
        self.is_open |= source == "__main__"
        module = self.module(source)
        for alias in statement.names:
            if alias.name == "*":
                if module is None and source.partition(".")[0] not in _LIBRARIES:
                    self.is_open |= any(isinstance(value, Imported) for value in self.scope.values())
                    self.scope.update({name: UNKNOWN for name, value in self.scope.items() if is_data(value)})
                self._import_all(module, is_known=is_known)
                continue
            value = self.module(f"{prefix}{alias.name}") or (module.names.get(alias.name) if module else None)
            is_extension = isinstance(value, ScriptClass) and alias.name.endswith("Extension")
            if value is None or value is UNKNOWN or is_extension:
                value = Imported(alias.name) if is_known or alias.name not in _OWN_NAMES else UNKNOWN
                self.is_open |= alias.name == "setup" and source.partition(".")[0] not in _WITH_SETUP
            self.bind(alias.asname or alias.name, value)

    def _import_all(self, module: ScriptModule | None, *, is_known: bool) -> None:
        """Handle `from module import *`. The finders come from setuptools, or else they are the project's own."""
        for name in FINDERS:
            self.bind(name, Imported(name) if is_known else UNKNOWN)
        for name, value in list(module.names.items()) if module else ():
            self.spend()
            if not name.startswith("_"):
                self.bind(name, value)

    def run_delete(self, statement: ast.Delete) -> None:
        for target in statement.targets:
            self.assign(target, UNKNOWN)

    def run_global(self, statement: ast.Global) -> None:
        for name in statement.names:
            self.scopes[-1:] = [{**scope, name: self.names} for scope in self.scopes[-1:]]

    def run_return(self, statement: ast.Return) -> None:
        result = None if statement.value is None else self.value(statement.value)
        if self.uncertain > self.base:
            self.result = UNKNOWN
        else:
            self.result = self.result if self.result is UNKNOWN else result
            raise ReturnedError

    def run_assert(self, statement: ast.Assert) -> None:
        self.value(statement.test)

    def run_raise(self, statement: ast.Raise) -> None:
        if statement.exc is None:
            self.run_unfollowed(statement)
        else:
            self.value(statement.exc)

    def _branch_by_version(self, taken: list[ast.stmt], other: list[ast.stmt]) -> None:
        """Run the branch that Python 3 takes, or the other one if the first ends the script.

        Names that it binds become Maybe.
        """
        if taken and _leaves(taken[-1]):
            taken = other
        scope = self.scope
        before = dict(scope)
        self.spend(len(scope))
        self.uncertain += 1
        self.by_version += 1
        self.run(taken)
        self.uncertain -= 1
        self.by_version -= 1
        for name, value in scope.items():
            if before.get(name, UNBOUND) is not value and not isinstance(value, Imported | ScriptFunction):
                scope[name] = maybe(value)

    def _branch(self, branches: list[list[ast.stmt]]) -> None:
        """Run each of `branches` with the same names. Names whose values then differ become unknown.

        A branch that raises or returns is ignored for all names. A branch that leaves a name without a value is ignored
        for this name, since nothing could use the name then.
        """
        scope = self.scope
        before = dict(scope)
        ends = []
        self.uncertain += 1
        for branch in branches:
            self.spend(len(scope))
            self.run(branch)
            if not (branch and _leaves(branch[-1])):
                ends.append(dict(scope))
            scope.clear()
            scope |= before
        self.uncertain -= 1
        for name in {name for end in ends for name, value in end.items() if before.get(name, UNBOUND) is not value}:
            values = [end[name] for end in ends if name in end]
            scope[name] = merged_value = one_of(self, values)
            self._spoil_aliases(name, [value for value in values if value is not merged_value], ends)

    def _spoil_aliases(self, name: str, values: list[Any], ends: list[dict[str, Any]]) -> None:
        """Spoil the containers in `values` that have other names, too, since changes by `name` affect them as well."""
        for value in values:
            if isinstance(value, list | dict):
                self.spend(sum(map(len, ends)))
                if any(other is value and key != name for end in ends for key, other in end.items()):
                    spoil(value)


_STATEMENTS: dict[type[ast.stmt], Callable[[_Script, Any], None]] = {
    ast.Expr: _Script.run_expression,
    ast.Assign: _Script.run_assignment,
    ast.AnnAssign: _Script.run_annotated_assignment,
    ast.AugAssign: _Script.run_augmented_assignment,
    ast.If: _Script.run_if,
    ast.Try: _Script.run_try,
    ast.With: _Script.run_with,
    ast.For: _Script.run_loop,
    ast.While: _Script.run_loop,
    ast.FunctionDef: _Script.run_function_definition,
    ast.ClassDef: _Script.run_class_definition,
    ast.Import: _Script.run_import,
    ast.ImportFrom: _Script.run_import_from,
    ast.Delete: _Script.run_delete,
    ast.Global: _Script.run_global,
    ast.Return: _Script.run_return,
    ast.Assert: _Script.run_assert,
    ast.Raise: _Script.run_raise,
}


def _leaves(statement: ast.stmt) -> bool:
    """Check whether the code after `statement` is unreachable because it raises, returns or ends the process."""
    match statement:
        case ast.Raise() | ast.Return():
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name in _ENDS
    return False


def _is_special(statement: ast.stmt) -> bool:
    """Check whether `statement` defines a method that is not called by its name."""
    return isinstance(statement, ast.FunctionDef) and statement.name.startswith("_")


def _takes_option(statement: ast.stmt) -> bool:
    """Check whether `statement` is like `sys.argv.remove(option)`, which fails in a build without options."""
    match statement:
        case (
            ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=("remove" | "index"))))
            | ast.Assign(value=ast.Call(func=ast.Attribute(value=owner, attr="index")))
        ):
            return isinstance(owner, ast.Attribute) and owner.attr == "argv"
    return False


def _is_open(node: ast.expr) -> bool:
    """Check whether `node` calls open(), io.open() or the like. As a context manager, it does not hide exceptions."""
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) == "open"
    )
