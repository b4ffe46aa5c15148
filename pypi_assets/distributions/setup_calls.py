"""Follows the statements of a setup.py, as syntax, to its calls of setup(), and tells their literal arguments.

Nothing is run. Values are followed as far as they are literal; what is not is UNKNOWN, and so is all that is made of
it. What is done in a branch, a loop or a handler may not be done, and leaves UNKNOWN what it would change.
"""

import ast
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

MAX_STEPS = 200_000
"""Statements, expressions and items of lists that are looked at, at most: what is longer is not told."""
MAX_CALL_DEPTH = 8
MAX_SETUP_CALLS = 20


class FindPackages(msgspec.Struct, frozen=True, array_like=True):
    """A call of find_packages(), or of find_namespace_packages() where `namespaces`; `where` "." is the top."""

    where: str = "."
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    namespaces: bool = False


class TooLongError(Exception):
    """MAX_STEPS are done."""


class _ReturnedError(Exception):
    """Ends the body of a function."""


UNKNOWN: Any = object()
"""What is not literal. Also the key of a dict that may have any other key."""
_UNBOUND: Any = object()


@dataclass(frozen=True, slots=True)
class _Imported:
    """What an import statement binds, by its own name."""

    name: str


@dataclass(frozen=True, slots=True)
class Extension:
    """Extension("name", ...), or an item of cythonize(), whose name is "*" or missing."""

    name: str | None
    sources: tuple[str, ...] = ()


@dataclass(slots=True)
class _Function:
    """A function of the script."""

    node: ast.FunctionDef
    is_running: bool = False


_MUTATING = frozenset(
    {"insert", "remove", "pop", "clear", "sort", "reverse", "setdefault", "popitem", "add", "discard"}
)
_READING = frozenset({"print", "len", "str", "repr", "int", "bool", "type", "isinstance", "any", "all", "min", "max"})
_SCALARS = str | int | float | None
_FINDERS = ("find_packages", "find_namespace_packages")
_FINDERS_FROM = frozenset({"setuptools", "distutils"})
"""What is imported as these from elsewhere is the project's own."""
_ENDS = frozenset({"exit", "_exit", "quit", "abort"})
_NAMES = {"__name__": "__main__", "__file__": "setup.py"}
_EXTENSIONS = frozenset({"Extension", "RustExtension", "Pybind11Extension", "CMakeExtension", "CppExtension"})


def setup_calls(tree: ast.Module) -> list[dict[Any, Any]]:
    """The arguments of each call of setup(), by name; UNKNOWN among the names stands for any others.

    Raises TooLongError, and RecursionError where expressions are too deep.
    """
    script = _Script()
    with suppress(_ReturnedError):  # a return outside of a function
        script.run(tree.body)
    return script.calls


@dataclass(slots=True)
class _Script:
    """Follows the statements of a script. Containers are kept by reference, as Python does, so that aliases agree."""

    names: dict[str, Any] = field(default_factory=lambda: dict(_NAMES))
    calls: list[dict[Any, Any]] = field(default_factory=list)
    scopes: list[dict[str, Any]] = field(default_factory=list)
    uncertain: int = 0
    steps: int = 0
    result: Any = None

    def spend(self, count: int = 1) -> None:
        self.steps += count
        if self.steps > MAX_STEPS:
            raise TooLongError

    # Statements

    def run(self, statements: Iterable[ast.stmt]) -> None:
        for statement in statements:
            self.spend()
            self._run_one(statement)

    def _run_one(self, statement: ast.stmt) -> None:
        match statement:
            case ast.Expr(value=value):
                self.value(value)
            case ast.Assign(targets=targets, value=value):
                result = self.value(value)
                for target in targets:
                    self._assign(target, result)
            case ast.AnnAssign(target=target, value=value) if value is not None:
                self._assign(target, self.value(value))
            case ast.AugAssign(target=target, op=operator, value=value):
                self._augment(target, operator, value)
            case ast.If(test=test, body=body, orelse=orelse):
                truth = self.truth(test)
                if truth is None:
                    self._branch([body, orelse])
                else:
                    self.run(body if truth else orelse)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=final):
                self._branch([[*body, *orelse], *(handler.body for handler in handlers)])
                self.run(final)
            case ast.With(items=items, body=body) if not all(_is_open(item.context_expr) for item in items):
                self._bind_items(items)
                self._branch([body, []])  # it may go on after an exception, as suppress() does
            case ast.With(items=items, body=body):
                self._bind_items(items)
                self.run(body)
            case ast.For() | ast.While():
                self._loop(statement)
            case ast.FunctionDef(name=name):
                self._bind(name, _Function(statement))
            case ast.ClassDef(name=name, body=body):
                self._spoil_named([each for each in body if not isinstance(each, ast.FunctionDef)])
                self._bind(name, UNKNOWN)
            case ast.Import(names=names):
                for alias in names:
                    bound = alias.asname or alias.name.partition(".")[0]
                    self._bind(bound, _Imported(alias.name if alias.asname else bound))
            case ast.ImportFrom(module=module, names=names, level=level):
                is_known = not level and (module or "").partition(".")[0] in _FINDERS_FROM
                for alias in names:
                    if alias.name == "*":
                        for name in _FINDERS:
                            self._bind(name, _Imported(name) if is_known else UNKNOWN)
                    else:
                        is_told = is_known or alias.name not in _FINDERS
                        self._bind(alias.asname or alias.name, _Imported(alias.name) if is_told else UNKNOWN)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._assign(target, UNKNOWN)
            case ast.Global(names=names):
                for name in names:
                    self.scopes[-1:] = [{**scope, name: self.names} for scope in self.scopes[-1:]]
            case ast.Return(value=value):
                result = None if value is None else self.value(value)
                if self.uncertain:
                    self.result = UNKNOWN
                else:
                    self.result = self.result if self.result is UNKNOWN else result
                    raise _ReturnedError
            case ast.Assert(test=value) | ast.Raise(exc=value) if value is not None:
                self.value(value)
            case _:
                self._spoil_named([statement])
                for name in self._stored([statement]):
                    self._bind(name, UNKNOWN)

    def _bind_items(self, items: list[ast.withitem]) -> None:
        for item in items:
            self.value(item.context_expr)
            if item.optional_vars is not None:
                self._assign(item.optional_vars, UNKNOWN)

    def _spoil_named(self, nodes: Iterable[ast.AST]) -> None:
        """What is not followed may change all that it names."""
        waiting = list(nodes)
        while waiting:
            node = waiting.pop()
            self.spend()
            if isinstance(node, ast.Name):
                _spoil(self._look_up(node.id))
            waiting += ast.iter_child_nodes(node)

    def _spoil_called(self, node: ast.AST) -> None:
        """What the calls in `node`, which are not followed, may change."""
        for each in ast.walk(node):
            self.spend()
            if isinstance(each, ast.Call):
                self._spoil_named([each])

    def _branch(self, branches: list[list[ast.stmt]]) -> None:
        """Runs each of `branches` from the same names. Those on which branches that go on disagree become unknown.

        A branch that leaves a name without a value doesn't count for it, since nothing could use the name then.
        """
        scope = self._scope
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
        for name in {name for end in ends for name, value in end.items() if before.get(name, _UNBOUND) is not value}:
            first, *others = (end[name] for end in ends if name in end)
            scope[name] = first if all(self._same(first, other) for other in others) else UNKNOWN

    def _loop(self, statement: ast.For | ast.While) -> None:
        """Runs the body once, for the calls and changes in it; what it binds is unknown, in the first round too."""
        unknown = dict.fromkeys(self._stored([statement]), UNKNOWN)
        self._scope.update(unknown)
        self.uncertain += 1
        self.run([*statement.body, *statement.orelse])
        self.uncertain -= 1
        self._scope.update(unknown)

    def _stored(self, statements: list[ast.stmt]) -> set[str]:
        """The names that `statements` bind."""
        names = set()
        waiting: list[ast.AST] = list(statements)
        while waiting:
            node = waiting.pop()
            self.spend()
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
                continue
            elif isinstance(node, ast.alias):
                names.add(node.asname or node.name.partition(".")[0])
            elif isinstance(node, ast.Constant | ast.expr_context):
                continue
            waiting += ast.iter_child_nodes(node)
        return names

    @property
    def _scope(self) -> dict[str, Any]:
        return self.scopes[-1] if self.scopes else self.names

    def _bind(self, name: str, value: object) -> None:
        if self._scope.get(name) is self.names:  # declared as global
            self.names[name] = UNKNOWN if self.uncertain else value
        else:
            self._scope[name] = value

    def _look_up(self, name: str) -> Any:
        value = self._scope.get(name, self.names) if self.scopes else self.names
        return self.names.get(name, _UNBOUND) if value is self.names else value

    def _assign(self, target: ast.expr, value: Any) -> None:
        match target:
            case ast.Name(id=name):
                self._bind(name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                known = isinstance(value, list | tuple) and len(value) == len(targets)
                for index, each in enumerate(targets):
                    self._assign(each, value[index] if known else UNKNOWN)
            case ast.Starred(value=inner):
                self._assign(inner, UNKNOWN)
            case ast.Subscript(value=container, slice=key):
                self._set_item(self.value(container), self.value(key), value)

    def _set_item(self, container: Any, key: Any, value: Any) -> None:
        if isinstance(container, dict) and isinstance(key, str):
            container[key] = UNKNOWN if self.uncertain else value
        else:
            _spoil(container)

    def _augment(self, target: ast.expr, operator: ast.operator, value: ast.expr) -> None:
        match target:
            case ast.Name(id=name):
                old, new = self._look_up(name), self.value(value)
                if isinstance(old, list):
                    self._extend(old, new if isinstance(operator, ast.Add) else UNKNOWN)
                elif isinstance(old, dict):
                    self._update(old, new if isinstance(operator, ast.BitOr) else UNKNOWN)
                else:
                    self._bind(name, self._add(old, new) if isinstance(operator, ast.Add) else UNKNOWN)
            case ast.Subscript(value=container, slice=key):
                old, new = self._item(self.value(container), self.value(key)), self.value(value)
                if isinstance(old, list):
                    self._extend(old, new if isinstance(operator, ast.Add) else UNKNOWN)
                else:
                    added = self._add(old, new) if isinstance(operator, ast.Add) else UNKNOWN
                    self._set_item(self.value(container), self.value(key), added)

    def _extend(self, old: list[Any], new: Any) -> None:
        if self.uncertain or not isinstance(new, list | tuple):
            _spoil(old)
        else:
            self.spend(len(new))
            old += new

    def _update(self, old: dict[Any, Any], new: Any) -> None:
        if not isinstance(new, dict):
            _spoil(old)
            return
        self.spend(len(new) + len(old))
        if UNKNOWN in new:
            _spoil(old)
        old |= dict.fromkeys(new, UNKNOWN) if self.uncertain else new

    # Expressions

    def truth(self, node: ast.expr) -> bool | None:
        """Whether `node` is true, None where that is unknown."""
        value = self.value(node)
        if isinstance(value, list | tuple | dict):
            self.spend(len(value))
            return None if UNKNOWN in value else bool(value)
        return bool(value) if isinstance(value, _SCALARS) else None

    def value(self, node: ast.expr) -> Any:
        """The value of `node`: str, bytes, numbers, None, list, tuple, dict, FindPackages, Extension or UNKNOWN."""
        self.spend()
        match node:
            case ast.Constant(value=value):
                return value if not isinstance(value, str) or value.isascii() or _is_encodable(value) else UNKNOWN
            case ast.Name(id=name):
                value = self._look_up(name)
                return UNKNOWN if value is _UNBOUND else value
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                items = self._items(elements)
                return tuple(items) if isinstance(node, ast.Tuple) else items
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._add(self.value(left), self.value(right))
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return self._percent(self.value(left), self.value(right))
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                first, second = self.value(left), self.value(right)
                return self._merged([first, second]) if isinstance(first, dict) else UNKNOWN
            case ast.BinOp(left=left, right=right):
                self.value(left)
                self.value(right)
                return UNKNOWN
            case ast.JoinedStr(values=parts):
                return self._concatenated([self.value(part) for part in parts])
            case ast.FormattedValue(value=inner, conversion=conversion, format_spec=None) if conversion in {-1, 115}:
                return _as_text(self.value(inner))
            case ast.IfExp(test=test, body=body, orelse=orelse):
                truth = self.truth(test)
                if truth is not None:
                    return self.value(body if truth else orelse)
                first, second = self.value(body), self.value(orelse)
                return first if self._same(first, second) else UNKNOWN
            case ast.BoolOp(op=operator, values=values):
                for each in values:
                    value = self.value(each)
                    truth = self.truth(ast.Constant(value)) if isinstance(value, str | int | None) else None
                    if truth is None or truth is isinstance(operator, ast.Or):
                        return UNKNOWN if truth is None else value
                return value
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                truth = self.truth(operand)
                return UNKNOWN if truth is None else not truth
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                return self._compared(self.value(left), operator, self.value(right))
            case ast.Subscript(value=container, slice=key):
                return self._item(self.value(container), self.value(key))
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                if (result := self._comprehension(node)) is UNKNOWN:
                    self._spoil_called(node)
                return result
            case ast.Lambda() | ast.DictComp():
                self._spoil_called(node)
            case ast.Attribute(value=ast.Name(id="os"), attr=("curdir" | "sep") as attribute):
                return "." if attribute == "curdir" else "/"
            case ast.NamedExpr(target=target, value=inner):
                value = self.value(inner)
                self._assign(target, value)
                return value
        return UNKNOWN

    def _items(self, elements: list[ast.expr]) -> list[Any]:
        items: list[Any] = []
        for element in elements:
            if isinstance(element, ast.Starred):
                value = self.value(element.value)
                known = isinstance(value, list | tuple)
                self.spend(len(value) if known else 1)
                items += value if known else [UNKNOWN]
            else:
                items.append(self.value(element))
        return items

    def _dict(self, keys: list[ast.expr | None], values: list[ast.expr]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key_node, value_node in zip(keys, values, strict=True):
            key = self.value(key_node) if key_node is not None else None
            value = self.value(value_node)
            if key_node is None:
                self._join(result, value)
            elif isinstance(key, str):
                result[key] = value
            else:
                _spoil(result)
        return result

    def _join(self, result: dict[Any, Any], value: Any) -> None:
        """Adds `value` to a `result` that nobody else holds."""
        if not isinstance(value, dict) or UNKNOWN in value:
            _spoil(result)
        if isinstance(value, dict):
            self.spend(len(value))
            result |= value

    def _merged(self, values: list[Any]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for value in values:
            self._join(result, value)
        return result

    def _add(self, left: Any, right: Any) -> Any:
        if isinstance(left, str) and isinstance(right, str):
            return self._concatenated([left, right])
        if isinstance(left, list | tuple) and type(left) is type(right):
            self.spend(len(left) + len(right))
            return type(left)([*left, *right])
        return UNKNOWN

    def _same(self, one: Any, other: Any) -> bool:
        """Whether two values are told and equal. Containers are not looked into further than their scalars."""
        if one is other:
            return True
        if isinstance(one, list | tuple) and type(one) is type(other) and len(one) == len(other):
            self.spend(len(one))
            return all(map(_same_scalar, one, other))
        return _same_scalar(one, other)

    def _compared(self, left: Any, operator: ast.cmpop, right: Any) -> Any:
        scalar = isinstance(left, str | int | None)
        if scalar and isinstance(right, str | int | None):
            match operator:
                case ast.Eq() | ast.Is():
                    return left == right
                case ast.NotEq() | ast.IsNot():
                    return left != right
        if scalar and isinstance(right, list | tuple | dict):
            self.spend(len(right))
            match operator:
                case ast.In() if all(isinstance(item, _SCALARS) for item in right):
                    return left in right
                case ast.NotIn() if all(isinstance(item, _SCALARS) for item in right):
                    return left not in right
        return UNKNOWN

    def _concatenated(self, parts: list[Any]) -> Any:
        if not all(isinstance(part, str) for part in parts):
            return UNKNOWN
        self.spend(sum(map(len, parts)) // 100)
        return "".join(parts)

    def _percent(self, template: Any, values: Any) -> Any:
        """`%` with %s, %d and %(name)s only: widths could ask for gigabytes."""
        if not isinstance(template, str):
            return UNKNOWN
        self.spend(len(template) // 16)
        pieces = re.split(r"%(?:\((\w+)\))?([sd%])", template)
        if any("%" in text for text in pieces[::3]):
            return UNKNOWN
        waiting = iter(values if isinstance(values, tuple) else (values,))
        result: list[Any] = [pieces[0]]
        for name, kind, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
            if kind == "%":
                result.append("%")
            elif name:
                result.append(_as_text(values.get(name, UNKNOWN) if isinstance(values, dict) else UNKNOWN))
            else:
                result.append(_as_text(next(waiting, UNKNOWN)))
            result.append(text)
        return self._concatenated(result)

    def _format(self, template: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
        """str.format() with {}, {0} and {name} only."""
        self.spend(len(template) // 16)
        pieces = re.split(r"\{(\w*)\}", template)
        if any("{" in text or "}" in text for text in pieces[::2]):
            return UNKNOWN
        result: list[Any] = [pieces[0]]
        automatic = 0
        for name, text in zip(pieces[1::2], pieces[2::2], strict=True):
            if name and not name.isdecimal():
                value = keywords.get(name, UNKNOWN)
            else:
                index = int(name[:4]) if name else automatic
                automatic += 1
                value = arguments[index] if index < len(arguments) else UNKNOWN
            result += [_as_text(value), text]
        return self._concatenated(result)

    def _item(self, container: Any, key: Any) -> Any:
        if isinstance(container, dict):
            return container.get(key, UNKNOWN) if isinstance(key, str) else UNKNOWN
        if not isinstance(container, str | list | tuple) or not isinstance(key, int):
            return UNKNOWN
        self.spend(len(container) // 16)
        known = isinstance(container, str) or UNKNOWN not in container
        return container[key] if known and -len(container) <= key < len(container) else UNKNOWN

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Any:
        if len(node.generators) != 1 or not isinstance(target := node.generators[0].target, ast.Name):
            return UNKNOWN
        values = self.value(node.generators[0].iter)
        if not isinstance(values, list | tuple):
            return UNKNOWN
        result = []
        scope = self._scope
        before = scope.get(target.id, _UNBOUND)
        for value in values:
            scope[target.id] = value
            truths = [self.truth(test) for test in node.generators[0].ifs]
            if None in truths:
                result.append(UNKNOWN)
            elif all(truths):
                result.append(self.value(node.elt))
        if before is _UNBOUND:
            scope.pop(target.id, None)
        else:
            scope[target.id] = before
        return result

    # Calls

    def _call(self, node: ast.Call) -> Any:
        function = node.func
        owner = None
        if isinstance(function, ast.Name):
            name = function.id
            bound = self._look_up(name)
            if isinstance(bound, _Function):
                return self._call_local(bound, node)
            if isinstance(bound, _Imported):
                name = bound.name
            elif bound is not _UNBOUND:
                name = ""
        elif isinstance(function, ast.Attribute):
            name, owner = function.attr, function.value
        else:
            self.value(function)
            return UNKNOWN
        arguments = self._items(node.args)
        keywords = self._keywords(node.keywords)
        if owner is not None and (not self._is_module(owner) or (name in _FINDERS and not self._has_finders(owner))):
            return self._call_method(self.value(owner), name, arguments, keywords)
        if name == "setup":
            if arguments:
                _spoil(keywords)
            if len(self.calls) == MAX_SETUP_CALLS:
                raise TooLongError
            self._weigh(keywords.values())
            self.calls.append(dict(keywords))
            return UNKNOWN
        if name == "exec" and len(arguments) == 1:
            for bound, value in self._scope.items():
                if value is None or isinstance(value, str | int | float):
                    self._scope[bound] = UNKNOWN
        known = _FUNCTIONS.get(name)
        if known is not None:
            return known(self, arguments, keywords)
        if name not in _READING:  # else it may change what it gets
            for argument in (*arguments, *keywords.values()):
                _spoil(argument)
                if isinstance(argument, _Function):
                    self._spoil_named(argument.node.body)
        return UNKNOWN

    def _weigh(self, values: Iterable[Any], depth: int = 4) -> None:
        """Spends of the texts in what setup() gets, each as often as it is there: names and lists share them."""
        for value in values:
            self.spend()
            inner: Iterable[Any] = ()
            match value:
                case str():
                    self.spend(len(value) // 16 + value.count("\n"))
                case list() | tuple():
                    inner = value
                case dict():
                    inner = value.values()
                case FindPackages():
                    inner = (value.include, value.exclude)
                case Extension():
                    inner = (value.sources,)
            if inner and depth:
                self._weigh(inner, depth - 1)

    def _is_module(self, node: ast.expr) -> bool:
        """Whether `node` is a module's dotted name, such as `os.path`, as far as one can see."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and isinstance(self._look_up(node.id), _Imported)

    def _has_finders(self, node: ast.expr) -> bool:
        """Whether a module is setuptools itself."""
        return isinstance(node, ast.Name) and self._look_up(node.id).name in _FINDERS_FROM

    def _keywords(self, keywords: list[ast.keyword]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        unpacked = []
        for keyword in keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                unpacked.append(value)
            else:
                result[keyword.arg] = value
        return {**self._merged(unpacked), **result} if unpacked else result

    def _call_local(self, function: _Function, node: ast.Call) -> Any:
        """Runs a function of the script, with the arguments that are named; what it returns at its end, if certain."""
        arguments = self._items(node.args)
        keywords = self._keywords(node.keywords)
        if function.is_running or len(self.scopes) >= MAX_CALL_DEPTH or function.node.decorator_list:
            self._spoil_named(function.node.body)
            return UNKNOWN
        parameters = function.node.args
        names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
        scope = dict.fromkeys(names, UNKNOWN)
        for name, default in zip(reversed(names), reversed(parameters.defaults), strict=False):
            scope[name] = self.value(default)
        for parameter, only in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
            scope[parameter.arg] = UNKNOWN if only is None else self.value(only)
        if UNKNOWN in keywords or len(arguments) > len(names):
            scope = dict.fromkeys(scope, UNKNOWN)
        scope |= dict(zip(names, arguments, strict=False))
        scope |= {name: value for name, value in keywords.items() if name in scope}
        if parameters.vararg:
            scope[parameters.vararg.arg] = UNKNOWN
        if parameters.kwarg:
            scope[parameters.kwarg.arg] = {name: value for name, value in keywords.items() if name not in scope}
        outer_result, self.result = self.result, None
        outer_uncertain = self.uncertain
        function.is_running = True
        self.scopes.append(scope)
        try:
            self.run(function.node.body)
        except _ReturnedError:
            pass
        finally:
            self.scopes.pop()
            function.is_running = False
            self.uncertain = outer_uncertain
        result, self.result = self.result, outer_result
        return UNKNOWN if outer_uncertain else result

    def _call_method(self, owner: Any, name: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
        if isinstance(owner, str):
            return self._string_method(owner, name, arguments, keywords)
        first = arguments[0] if len(arguments) == 1 else UNKNOWN
        if isinstance(owner, list):
            if name == "append":
                self._extend(owner, [first])
            elif name == "extend":
                self._extend(owner, first)
            elif name in _MUTATING:
                _spoil(owner)
        elif isinstance(owner, dict):
            if name == "update":
                self._update(owner, self._merged([*arguments, keywords]))
            elif name in {"values", "keys"} and UNKNOWN not in owner:
                return list(owner.values() if name == "values" else owner)
            elif name == "get" and UNKNOWN not in owner and arguments and isinstance(arguments[0], str):
                return owner.get(arguments[0], arguments[1] if len(arguments) > 1 else None)
            elif name == "copy":
                return dict(owner)
            elif (
                name == "setdefault" and UNKNOWN not in owner and len(arguments) == 2 and isinstance(arguments[0], str)
            ):
                if arguments[0] not in owner:
                    self._set_item(owner, arguments[0], arguments[1])
                return owner[arguments[0]]
            elif name in _MUTATING:
                _spoil(owner)
        else:
            for argument in (*arguments, *keywords.values()):
                _spoil(argument)
        return UNKNOWN

    def _string_method(self, text: str, name: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
        self.spend(len(text) // 100)
        if name == "join" and len(arguments) == 1 and isinstance(parts := arguments[0], list | tuple):
            joined = [piece for part in parts for piece in (text, part)][1:]
            return self._concatenated(joined)
        if name == "format":
            return self._format(text, arguments, keywords)
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
            case (("lower" | "upper" | "title" | "splitlines"), []):
                result = getattr(text, name)()
            case "replace", [str(old), str(new)] if old and len(new) <= len(old):
                result = text.replace(old, new)
            case _:
                return UNKNOWN
        self.spend(len(result) if isinstance(result, list) else 1)
        return result


def _leaves(statement: ast.stmt) -> bool:
    """Whether what comes after `statement` is not reached: it raises, returns or ends the process."""
    match statement:
        case ast.Raise() | ast.Return():
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name in _ENDS
    return False


def _is_open(node: ast.expr) -> bool:
    """Whether `node` is a call of open(), of io.open() or the like, which hides no exception."""
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) == "open"
    )


def _spoil(container: Any) -> None:
    """Something unknown has been done to `container`."""
    if isinstance(container, list):
        container[:] = [UNKNOWN]
    elif isinstance(container, dict):
        container.clear()
        container[UNKNOWN] = UNKNOWN


def _same_scalar(one: Any, other: Any) -> bool:
    return (
        type(one) is type(other)
        and isinstance(one, str | int | float | None | FindPackages | _Imported)
        and one == other
    )


def _is_encodable(text: str) -> bool:
    """Whether `text` has no half of a surrogate pair, which a literal can name, but no file can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _as_text(value: Any) -> Any:
    """What %s makes of `value`; a number of thousands of digits is refused by str() itself."""
    return str(value) if isinstance(value, str) or (isinstance(value, int) and abs(value) < 1 << 62) else UNKNOWN


def is_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)


# Functions that are known: each gets the script, its arguments and its keywords.


def _call_find(script: _Script, arguments: list[Any], keywords: dict[Any, Any], *, namespaces: bool = False) -> Any:
    values: dict[Any, Any] = {"where": ".", "exclude": (), "include": ("*",)}
    values |= dict(zip(values, arguments, strict=False)) | keywords
    where, exclude, include = values["where"], values["exclude"], values["include"]
    # A string for a list is a common slip, which setuptools takes as its letters.
    exclude, include = (tuple(each) if isinstance(each, str) else each for each in (exclude, include))
    if UNKNOWN in values or not isinstance(where, str) or not (is_texts(exclude) and is_texts(include)):
        return UNKNOWN
    script.spend(len(exclude) + len(include))
    folder = "/".join(part for part in where.replace("\\", "/").split("/") if part not in {"", "."})
    return [FindPackages(folder or ".", tuple(include), tuple(exclude), namespaces)]


def _call_find_namespace(script: _Script, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    return _call_find(script, arguments, keywords, namespaces=True)


def _call_extension(script: _Script, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    name = arguments[0] if arguments else keywords.get("name", keywords.get("target", UNKNOWN))
    sources = arguments[1] if len(arguments) > 1 else keywords.get("sources", ())
    if not isinstance(name, str):
        return UNKNOWN
    if isinstance(sources, list | tuple):
        script.spend(len(sources))
    return Extension(name, tuple(sources) if is_texts(sources) else ())


def _call_cythonize(script: _Script, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    listed = arguments[0] if arguments else keywords.get("module_list", UNKNOWN)
    listed = listed if isinstance(listed, list | tuple) else [listed]
    script.spend(len(listed))
    return [Extension(None, (item,)) if isinstance(item, str) else item for item in listed]


def _call_join(script: _Script, arguments: list[Any], _: dict[Any, Any]) -> Any:
    """os.path.join, with / on every platform."""
    if not all(isinstance(argument, str) for argument in arguments):
        return UNKNOWN
    parts = [argument for argument in arguments if argument]
    return script._concatenated([piece for part in parts for piece in ("/", part)][1:])


def _call_same(_: _Script, arguments: list[Any], __: dict[Any, Any]) -> Any:
    """abspath, realpath and normpath of what lies beside setup.py is taken relative to it."""
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], str) else UNKNOWN


def _call_dirname(_: _Script, arguments: list[Any], __: dict[Any, Any]) -> Any:
    return arguments[0].rpartition("/")[0] if len(arguments) == 1 and isinstance(arguments[0], str) else UNKNOWN


def _call_getcwd(_: _Script, __: list[Any], ___: dict[Any, Any]) -> Any:
    return ""


def _call_list(script: _Script, arguments: list[Any], _: dict[Any, Any]) -> Any:
    if not arguments:
        return []
    if not isinstance(items := arguments[0], list | tuple | dict):
        return UNKNOWN
    script.spend(len(items))
    return list(items)


def _call_tuple(script: _Script, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    items = _call_list(script, arguments, keywords)
    return tuple(items) if isinstance(items, list) else items


def _call_set(script: _Script, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    """Each item once, in the order they came in."""
    items = _call_list(script, arguments, keywords)
    if not isinstance(items, list) or not all(isinstance(item, str | FindPackages) for item in items):
        return UNKNOWN
    return list(dict.fromkeys(items))


def _call_sum(script: _Script, arguments: list[Any], _: dict[Any, Any]) -> Any:
    """sum(lists, [])"""
    if len(arguments) != 2 or not isinstance(arguments[0], list | tuple):
        return UNKNOWN
    result = _call_list(script, arguments[1:], {})
    for items in arguments[0]:
        if not isinstance(items, list | tuple) or result is UNKNOWN:
            return UNKNOWN
        script.spend(len(items))
        result += items
    return result


def _call_dict(script: _Script, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
    return script._merged([*arguments, keywords])


_FUNCTIONS: dict[str, Callable[[_Script, list[Any], dict[Any, Any]], Any]] = {
    "find_packages": _call_find,
    "find_namespace_packages": _call_find_namespace,
    **dict.fromkeys(_EXTENSIONS, _call_extension),
    "cythonize": _call_cythonize,
    "join": _call_join,
    **dict.fromkeys(("abspath", "realpath", "normpath"), _call_same),
    "dirname": _call_dirname,
    "getcwd": _call_getcwd,
    "list": _call_list,
    "tuple": _call_tuple,
    "set": _call_set,
    "frozenset": _call_set,
    "sorted": _call_list,
    "sum": _call_sum,
    "dict": _call_dict,
}
