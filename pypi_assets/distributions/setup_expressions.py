"""Evaluate the expressions of a setup.py as far as they are literal, and follow the calls in them.

Nothing is run. Values that are not literal are UNKNOWN, and so is everything computed from them.
"""

import ast
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from pypi_assets.distributions.setup_functions import FUNCTIONS, call_method
from pypi_assets.distributions.setup_modules import Additions, ReturnedError
from pypi_assets.distributions.setup_operations import (
    add,
    compared,
    extend,
    is_same,
    item_of,
    join,
    merged,
    one_of,
    percent,
    set_item,
)
from pypi_assets.distributions.setup_state import IMPORTING, NAMESPACES, TO_NAMESPACES, TooLongError
from pypi_assets.distributions.setup_values import (
    ASSUMED,
    COPIED,
    SCALARS,
    UNBOUND,
    UNKNOWN,
    Assumed,
    Extension,
    FileText,
    FindPackages,
    Imported,
    Maybe,
    OpenFile,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    Walk,
    is_encodable,
    maybe,
    spoil,
)

MAX_CALL_DEPTH = 8
MAX_SETUP_CALLS = 20
FINDERS = ("find_packages", "find_namespace_packages")
FINDERS_FROM = frozenset({"setuptools", "distutils"})
"""Modules that export FINDERS. If another module exports one of them, it is the project's own function."""
_READING_TEXT = (
    "print len str repr int bool type isinstance any all min max zip enumerate reversed hasattr exists isfile isdir"
)
_READING = frozenset(_READING_TEXT.split())
"""Functions that do not change their arguments."""
_TO_OBJECTS = frozenset({"patch", "get_objects", "get_referrers", "get_referents"})
"""Functions of unittest.mock and gc that reach objects without naming them."""
_WRITING = frozenset({"append", "insert", "extend", "update", "setdefault", "__setitem__"})
"""Methods that add to sys.argv and os.environ."""
_HANDING_ON = frozenset({"min", "max", "zip", "enumerate", "reversed"})
"""Functions that return items of their arguments."""
_READING_METHODS = frozenset({"get", "keys", "items", "copy", "__contains__", "__getitem__"})
_PATCHED = frozenset({"setuptools", "distutils", "sys", "pkg_resources", "builtins", "__main__"})
"""Modules through whose attributes a script may change what setup() does."""


@dataclass(slots=True)
class Expressions(Additions):
    """Evaluates expressions in the state of a script."""

    def truth(self, node: ast.expr) -> bool | None:
        """Return whether `node` is true, or None if that is unknown."""
        return self.truth_of(self.value(node))

    def condition(self, node: ast.expr) -> Any:
        """Return the value of `node`, or Maybe(True) or Maybe(False) if an environment variable decides."""
        value = self.value(node)
        if not isinstance(value, Assumed):
            return value
        self.has_assumed = True
        return Maybe(bool(value.value))

    def truth_of(self, value: Any) -> bool | None:
        """Return whether `value` is true, or None if that is unknown."""
        if isinstance(value, list | tuple | dict):
            self.spend(len(value))
            items = value.values() if isinstance(value, dict) else value
            has_unknown = UNKNOWN in value or any(isinstance(item, Maybe) for item in items)
            return None if has_unknown else bool(value)
        return bool(value) if isinstance(value, SCALARS) else None

    def value(self, node: ast.expr) -> Any:
        """Return the value of `node`, or UNKNOWN.

        Values are str, bytes, numbers, None, list, tuple, dict, and the classes of `setup_values`. Raise TooLongError,
        for example if `node` is nested too deeply.
        """
        if isinstance(node, ast.BinOp):  # sums can be nested deeply on the left
            return self._sum(node)
        self.spend()
        match node:
            case ast.Constant(value=value):
                return value if not isinstance(value, str) or value.isascii() or is_encodable(value) else UNKNOWN
            case ast.Name(id=name):
                value = self.look_up(name)
                if isinstance(value, ScriptFunction) and not value.is_handed_on:
                    value.is_handed_on = True
                    self.reach([value.node], later=True)
                self.is_open |= value is UNBOUND and name in TO_NAMESPACES
                return UNKNOWN if value is UNBOUND else value
            case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Set(elts=elements):
                items = self._items(elements)
                return tuple(items) if isinstance(node, ast.Tuple) else items
            case ast.Dict(keys=keys, values=values):
                return self._dict(keys, values)
        self.enter()
        value = self._call(node) if isinstance(node, ast.Call) else self._rarer_value(node)
        self.leave()
        return value

    def _sum(self, node: ast.BinOp) -> Any:
        """Return the value of `a + b + c ...`, evaluated from left to right."""
        operations = [node]
        while isinstance(left := operations[-1].left, ast.BinOp):
            operations.append(left)
        self.spend(len(operations))
        self.enter()
        value = self.value(left)
        for operation in reversed(operations):
            right = UNKNOWN if _reads_namespace(operation.right) else self.value(operation.right)
            value = self._combined(value, operation.op, right)
        self.leave()
        return value

    def _rarer_value(self, node: ast.expr) -> Any:
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self._chosen(self.condition(test), body, orelse)
            case ast.BoolOp(op=operator, values=values):
                return self._decided(isinstance(operator, ast.Or), values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._negated(operand)
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                if _reads_namespace(right):
                    return UNKNOWN
                return compared(self, self.value(left), operator, self.value(right))
            case ast.Subscript(value=container, slice=key):
                if _reads_namespace(container):
                    self.spoil_by_name(self.value(key))
                    return UNKNOWN
                holder = self.value(container)
                if isinstance(holder, ScriptClass):
                    self.reach([holder.node], later=True)
                if isinstance(holder, Imported):
                    self.is_open |= holder.name == "sys.modules"
                    return _version_part(holder, key)
                if (item := item_of(self, holder, self.value(key))) is UNKNOWN:
                    self.spoil_inside(holder)
                return item
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                if (result := self._comprehension(node)) is UNKNOWN:
                    self._reach_comprehension(node, [node.elt])
                return result
            case ast.Lambda():
                self.reach([node], later=True)
                return UNKNOWN
            case ast.DictComp(key=key, value=inner):
                self._reach_comprehension(node, [key, inner])
                return UNKNOWN
            case ast.Attribute(value=ast.Name(id="os"), attr=("curdir" | "sep") as attribute):
                return "." if attribute == "curdir" else "/"
            case ast.Attribute(value=ast.Name(id="sys"), attr=("version_info" | "argv") as attribute):
                return Imported(attribute)
            case ast.Attribute(value=ast.Name(id="os"), attr="environ"):
                return Imported("environ")
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="sys"), attr="version_info"), attr="major"):
                return Imported("version_info[0]")
            case ast.Attribute(value=owner, attr=attribute) if attribute.endswith("Extension") and self._is_module(
                owner
            ):
                return Imported(attribute)
            case ast.Attribute(value=ast.Name(id="six"), attr=("PY2" | "PY3") as attribute):
                return Maybe(attribute == "PY3")
            case ast.NamedExpr(target=target, value=inner):
                value = self.value(inner)
                self.assign(target, value)
                return value
            case ast.Yield(value=inner):
                extend(self, self.yielded, [UNKNOWN if inner is None else self.value(inner)])
                return UNKNOWN
            case ast.YieldFrom(value=inner):
                extend(self, self.yielded, self.value(inner))
                return UNKNOWN
            case ast.Attribute():
                return self._attribute(node)
        self.spoil_called(node)
        return UNKNOWN

    def _attribute(self, node: ast.Attribute) -> Any:
        """Return the value of `owner.name`. A method that is not called here may be called later, under any name."""
        if (value := self.attribute(node)) is not UNBOUND:
            return value
        self.is_open |= node.attr in NAMESPACES
        owner = self.value(node.value)
        self.spoil_value(owner)
        if isinstance(owner, ScriptClass):
            self.reach([owner.node], later=True)
        is_of_setup = isinstance(owner, Imported) and owner.name.partition(".")[0] in _PATCHED
        return Imported(f"{owner.name}.{node.attr}") if is_of_setup else UNKNOWN

    def spoil_by_name(self, name: Any) -> None:
        """Spoil the container that is bound to `name`, or all bound containers if the name is unknown."""
        if isinstance(name, str):
            spoil(self.look_up(name))
        else:
            self.spoil_inside([*self.names.values(), *self.scope.values()])

    def spoil_inside(self, container: Any) -> None:
        """Spoil the lists and dicts inside of `container`, since one of them may be changed."""
        items = container.values() if isinstance(container, dict) else container
        if isinstance(container, list | tuple | dict):
            self.spend(len(container))
            for item in list(items):
                spoil(item)

    def _chosen(self, test: Any, body: ast.expr, orelse: ast.expr) -> Any:
        """Return the value of `body if test else orelse`."""
        truth = self.truth_of(test)
        if truth is not None:
            return self.value(body if truth else orelse)
        values = [self.value(body), self.value(orelse)]
        if isinstance(test, Maybe) and isinstance(test.value, bool) and not is_same(self, *values):
            return maybe(values[not test.value])
        chosen = one_of(self, values)
        for value in values:
            if value is not chosen:  # a change of one may be a change of the other
                spoil(value)
        return chosen

    def _negated(self, operand: ast.expr) -> Any:
        value = self.condition(operand)
        if isinstance(value, Maybe) and isinstance(value.value, bool):
            return Maybe(not value.value)
        truth = self.truth_of(value)
        return UNKNOWN if truth is None else not truth

    def _combined(self, left: Any, operator: ast.operator, right: Any) -> Any:
        """Return the value of `left + right`, `left % right` or `left | right`."""
        match operator:
            case ast.Add():
                return add(self, left, right)
            case ast.Mod():
                return percent(self, left, right)
            case ast.BitOr() if isinstance(left, dict):
                return merged(self, [left, right])
        return UNKNOWN

    def _decided(self, is_or: bool, operands: list[ast.expr]) -> Any:
        """Return the value of `a or b ...` or `a and b ...`: the first operand that decides, or else the last.

        Operands after an uncertain one may not be reached.
        """
        value: Any = UNKNOWN
        uncertain = self.uncertain
        is_known = True
        for operand in operands:
            value = self.condition(operand)
            inner = value.value if isinstance(value, Maybe) and isinstance(value.value, bool) else value
            truth = self.truth_of(inner) if isinstance(inner, str | int | None) else None
            if truth is is_or:
                is_known = True  # regardless of the operands before
                break
            is_known &= truth is not None
            self.uncertain += truth is None or inner is not value
        is_certain = self.uncertain == uncertain
        self.uncertain = uncertain
        if not is_known:
            spoil(value)
            return UNKNOWN
        return value if is_certain else Assumed(value) if isinstance(value, str) else maybe(value)

    def assign(self, target: ast.expr, value: Any) -> None:
        """Follow `target = value`."""
        match target:
            case ast.Name(id=name):
                self.bind(name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                known = isinstance(value, list | tuple) and len(value) == len(targets)
                known = known and not any(isinstance(each, ast.Starred) for each in targets)
                if not known:
                    self.spoil_inside(value)
                for index, each in enumerate(targets):
                    self.assign(each, value[index] if known else UNKNOWN)
            case ast.Starred(value=inner):
                self.assign(inner, UNKNOWN)
            case ast.Subscript(value=container, slice=key):
                holder = self.value(container)
                self.is_open |= isinstance(holder, Imported) and holder.name == "sys.modules"
                at = self.value(key)
                set_item(self, holder, at, value)
                if not (isinstance(holder, dict) and isinstance(at, str)):
                    spoil(value)
            case ast.Attribute(value=owner, attr=attribute):
                module = self.look_up(owner.id) if isinstance(owner, ast.Name) else None
                if isinstance(module, ScriptModule):
                    module.names[attribute] = UNKNOWN if self.uncertain else value
                    return
                self.is_open |= attribute in NAMESPACES
                self.set_attribute(owner, attribute)
                if not isinstance(owner, ast.Name):
                    self.value(owner)
                spoil(value)

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
                join(self, result, value)
            elif isinstance(key, str):
                result[key] = value
            else:
                spoil(result)
                spoil(value)
        return result

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Any:
        if len(node.generators) != 1:
            return UNKNOWN
        values = self.value(node.generators[0].iter)
        if isinstance(values, Walk):
            self._reach_comprehension(node, [node.elt])
            return [maybe(packages_in(values))]
        if not isinstance(target := node.generators[0].target, ast.Name):
            return UNKNOWN
        if not isinstance(values, list | tuple):
            return UNKNOWN
        result: list[Any] = []
        scope = self.scope
        before = scope.get(target.id, UNBOUND)
        for value in values:
            scope[target.id] = value.value if isinstance(value, Maybe) else value
            truths = [self.truth(test) for test in node.generators[0].ifs]
            if all(truth is not False for truth in truths):
                item = self.value(node.elt)
                if None in truths and isinstance(item, FindPackages):
                    item = replace(item, is_guess=True)
                result.append(maybe(item) if None in truths or isinstance(value, Maybe) else item)
        if before is UNBOUND:
            scope.pop(target.id, None)
        else:
            scope[target.id] = before
        return result

    def _reach_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, items: list[ast.expr]
    ) -> None:
        """Make unknown everything that an unsupported comprehension can change or use as an item."""
        self.spoil_called(node)
        self.reach(items)
        for generator in node.generators:
            self.reach([generator.target])
            for each in ast.walk(generator.iter):
                self.spend()
                if isinstance(each, ast.List | ast.Tuple | ast.Set | ast.Dict):
                    self.reach([each])
                elif isinstance(each, ast.Name):
                    self.spoil_inside(self.look_up(each.id))

    def _call(self, node: ast.Call) -> Any:
        function = node.func
        owner: ast.expr | None = None
        if isinstance(function, ast.Name):
            name, bound = function.id, self.look_up(function.id)
        elif isinstance(function, ast.Attribute):
            name, bound = function.attr, self.attribute(function)
            owner = function.value if bound is UNBOUND else None
            bound = UNBOUND if bound is UNKNOWN else bound
        else:
            name, bound = "", self.value(function)
            bound = UNKNOWN if isinstance(bound, Imported) else bound
        if bound is UNBOUND and owner is None and name in {"globals", "locals", "vars"} and not node.args:
            self.is_open = True
            return UNKNOWN
        if owner is not None and name in _READING_METHODS and _reads_namespace(owner):
            self.spoil_by_name((self._items(node.args) or [UNKNOWN])[0])
            return UNKNOWN
        is_format = name == "format" and owner is not None
        self.is_open |= name in _TO_OBJECTS or any(
            map(_names_main, [*node.args, *(each.value for each in node.keywords)])
        )
        arguments = self._items(node.args)
        keywords = self._keywords([each for each in node.keywords if not (is_format and _reads_namespace(each.value))])
        if len(keywords) < len(node.keywords) and is_format:
            keywords[UNKNOWN] = UNKNOWN
        if isinstance(bound, Maybe):  # imported, or None if the import failed
            bound = bound.value
        if isinstance(bound, ScriptFunction):
            return self.call_function(bound, arguments, keywords)
        if isinstance(bound, ScriptClass):
            self.reach([bound.node], later=True)
        if isinstance(bound, Imported):
            name = bound.name
        elif bound is not UNBOUND:
            name = ""
        if isinstance(owner, ast.Name | ast.Attribute) and name in _WRITING:
            self.write(self.value(owner), _written_by(name, arguments, keywords))
        if owner is not None and name == "get" and self._is_environment(owner):
            return FUNCTIONS["getenv"](self, arguments, keywords)
        if owner is not None and (not self._is_module(owner) or (name in FINDERS and not self._has_finders(owner))):
            of_method = self.value(owner)
            if isinstance(of_method, ScriptClass):
                self.reach([of_method.node], later=True)
            return call_method(self, of_method, name, arguments, keywords)
        return self._call_named(name, arguments, keywords)

    def _call_named(self, name: str, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
        """Call a function that is imported or built in."""
        if name == "setup":
            self._call_setup(arguments, keywords)
            return UNKNOWN
        if name in IMPORTING:
            return Imported(arguments[0] if arguments and isinstance(arguments[0], str) else "")
        if name == "eval" or (name == "exec" and arguments and isinstance(arguments[0], str)):
            self.is_open = True
            return UNKNOWN
        if name in {"setattr", "delattr", "vars"}:
            target = arguments[0] if arguments else UNKNOWN
            self.is_open |= target is UNKNOWN or isinstance(target, Imported | ScriptModule)
        path = self.files.path(arguments[0]) if arguments and isinstance(arguments[0], str) else None
        if name in {"exec", "execfile"} and arguments:
            self.execute(FileText(path) if path and name == "execfile" else arguments[0], arguments[1:])
            return UNKNOWN
        if name == "open" and path:
            return OpenFile(path)
        if name == "copytree":
            self.copy_folder(arguments)
        if name == "get_extensions":
            return self.packages_extensions()
        if name == "walk" and arguments and isinstance(arguments[0], str):
            return Walk(arguments[0])
        known = FUNCTIONS.get("Extension" if name.endswith("Extension") else name)
        if known is not None:
            return known(self, arguments, keywords)
        for argument in (*arguments, *keywords.values()):
            if name not in _READING:  # it may change its arguments
                self.spoil_value(argument)
                if isinstance(argument, ScriptClass):
                    self.reach([argument.node], later=True)
            elif name in _HANDING_ON:
                self.spoil_inside(argument)
        return UNKNOWN

    def _call_setup(self, arguments: list[Any], keywords: dict[Any, Any]) -> None:
        if arguments:
            spoil(keywords)
        if self.is_open:  # setup may be another function, and names may have other values
            keywords = {UNKNOWN: UNKNOWN}
        if self.has_assumed:
            keywords[ASSUMED] = True
        if len(self.calls) == MAX_SETUP_CALLS:
            raise TooLongError
        if "cffi_modules" in keywords:
            self.add_ffi_modules(keywords)
        if copied := self.copied_by_commands(keywords.get("cmdclass")):
            keywords[COPIED] = copied
        self._weigh(keywords.values())
        self.calls.append({key: maybe(value) for key, value in keywords.items()} if self.by_version else dict(keywords))

    def _weigh(self, values: Iterable[Any], depth: int = 4) -> None:
        """Count steps for the texts in the arguments of setup(), once for each occurrence: lists can share values."""
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
                case Maybe():
                    inner = (value.value,)
            if inner and depth:
                self._weigh(inner, depth - 1)

    def _is_environment(self, node: ast.expr) -> bool:
        """Check whether `node` is os.environ."""
        return isinstance(node, ast.Name | ast.Attribute) and self.value(node) == Imported("environ")

    def _is_module(self, node: ast.expr) -> bool:
        """Check whether `node` is a module's dotted name such as `os.path`, as far as that is visible."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and isinstance(self.look_up(node.id), Imported)

    def _has_finders(self, node: ast.expr) -> bool:
        """Check whether a module is setuptools itself."""
        return isinstance(node, ast.Name) and self.look_up(node.id).name in FINDERS_FROM

    def _keywords(self, keywords: list[ast.keyword]) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        unpacked = []
        for keyword in keywords:
            value = self.value(keyword.value)
            if keyword.arg is None:
                unpacked.append(value)
            else:
                result[keyword.arg] = value
        return {**merged(self, unpacked), **result} if unpacked else result

    def call_function(self, function: ScriptFunction, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
        """Run a function of the script with its named arguments. Return its result if that is certain."""
        if function.is_running or len(self.scopes) >= MAX_CALL_DEPTH or function.node.decorator_list:
            if not function.is_handed_on:
                function.is_handed_on = True
                self.reach([function.node], later=True)
            for argument in (*arguments, *keywords.values()):
                spoil(argument)
            return UNKNOWN
        scope = self._parameters(function, arguments, keywords)
        outer_result, self.result = self.result, None
        outer = self.uncertain, self.base, self.depth, self.names, self.yielded
        yielded: list[Any] = []
        self.yielded = yielded
        function.is_running = True
        self.base, self.names = self.uncertain, function.names
        self.scopes.append(scope)
        try:
            self.run(function.node.body)
        except ReturnedError:
            pass
        finally:
            self.scopes.pop()
            function.is_running = False
            self.uncertain, self.base, self.depth, self.names, self.yielded = outer
        result, self.result = self.result, outer_result
        return yielded if function.is_generator else result

    def _parameters(self, function: ScriptFunction, arguments: list[Any], keywords: dict[Any, Any]) -> dict[str, Any]:
        """Return the local names of a function of the script at a call. All calls share the values of defaults."""
        parameters = function.node.args
        names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
        scope = dict.fromkeys(names, UNKNOWN)
        for name, default in zip(reversed(names), reversed(parameters.defaults), strict=False):
            scope[name] = function.defaults.setdefault(name, self.value(default))
        for parameter, only in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True):
            value = UNKNOWN if only is None else self.value(only)
            scope[parameter.arg] = function.defaults.setdefault(parameter.arg, value)
        for argument in arguments[len(names) :]:
            spoil(argument)
        if UNKNOWN in keywords or len(arguments) > len(names):
            scope = dict.fromkeys(scope, UNKNOWN)
        scope |= dict(zip(names, arguments, strict=False))
        scope |= {name: value for name, value in keywords.items() if name in scope}
        if parameters.vararg:
            scope[parameters.vararg.arg] = UNKNOWN
        if parameters.kwarg:
            scope[parameters.kwarg.arg] = {name: value for name, value in keywords.items() if name not in scope}
        return scope


def _reads_namespace(node: ast.expr) -> bool:
    """Check whether `node` calls globals(), locals() or vars() in a use that changes nothing."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[], keywords=[]):
            return name in {"globals", "locals", "vars"}
    return False


def _names_main(node: ast.expr) -> bool:
    """Check whether `node` is a text that names the script itself, as in `mock.patch("__main__.name", ...)`."""
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and "__main__" in node.value


def _written_by(name: str, arguments: list[Any], keywords: dict[Any, Any]) -> list[Any]:
    """Return the texts that a method adds to sys.argv or os.environ. None stands for any text."""
    listed = (arguments or [{}])[-1 if name in {"append", "insert"} else 0]
    if name in {"extend", "update"}:
        return [*(listed if isinstance(listed, list | tuple | dict) else [None]), *keywords]
    return [listed]


def packages_in(walk: Walk) -> FindPackages:
    """Return the packages in a folder that the script traverses, including the folder itself."""
    folder = "/".join(part for part in walk.folder.replace("\\", "/").split("/") if part not in {"", "."})
    parent, _, name = folder.rpartition("/")
    return FindPackages(parent or ".", (name, f"{name}.*") if name else ("*",), is_guess=True)


def _version_part(found: Imported, key: ast.expr) -> Any:
    """Return `sys.version_info[0]`, or its first parts."""
    match key:
        case ast.Constant(value=0) if found.name == "version_info":
            return Imported("version_info[0]")
        case ast.Slice(lower=None | ast.Constant(value=0), step=None) if found.name == "version_info":
            return found
    return UNKNOWN
