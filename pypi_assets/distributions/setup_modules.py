"""Follow the files that a setup.py imports or runs, and add arguments of plug-ins and commands to setup()."""

import ast
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pypi_assets.distributions.build_scripts import BuildScripts
from pypi_assets.distributions.setup_operations import extend
from pypi_assets.distributions.setup_state import ScriptState
from pypi_assets.distributions.setup_values import (
    UNBOUND,
    UNKNOWN,
    Extension,
    Ffi,
    FileText,
    Maybe,
    ScriptClass,
    ScriptFunction,
    ScriptModule,
    spoil,
)


class ReturnedError(Exception):
    """Ends the body of a function."""


@dataclass(slots=True)
class Modules(ScriptState):
    """Runs files in the state of a script. `modules` are the imported files by path, or None for unsupported ones."""

    files: BuildScripts = field(default_factory=BuildScripts)
    modules: dict[str, ScriptModule | None] = field(default_factory=dict)

    def run(self, statements: Iterable[ast.stmt]) -> None:
        """Follow statements."""
        raise NotImplementedError

    def module(self, name: str) -> ScriptModule | None:
        """Return the module with the dotted `name`, or None if it is not a file that can be followed."""
        return self.module_at(f"{name.replace('.', '/')}.py", name)

    def module_at(self, written: str, name: str = "") -> ScriptModule | None:
        """Return the module in a file, which runs at its first use.

        If the file imports itself, it gets the names that are bound so far.
        """
        path = self.files.path(written)
        if path is None:
            return None
        if path not in self.modules:
            module = self.modules[path] = ScriptModule({"__name__": name, "__file__": path})
            if not self._run_file(path, module.names):
                self.modules[path] = None
        return self.modules[path]

    def attribute(self, node: ast.Attribute) -> Any:
        """Return the value of `module.name`, UNKNOWN if it has none, or UNBOUND if `module` is not a followed file."""
        owner = self.look_up(node.value.id) if isinstance(node.value, ast.Name) else None
        owner = owner.value if isinstance(owner, Maybe) else owner
        return owner.names.get(node.attr, UNKNOWN) if isinstance(owner, ScriptModule) else UNBOUND

    def execute(self, source: Any, namespaces: list[Any]) -> None:
        """Run `exec(source)` or `exec(source, namespace)`. Code that is not followed may change everything it gets."""
        self.spend(len(self.names) + len(self.scope))
        names = namespaces[0] if namespaces else {**self.names, **self.scope}
        is_known = isinstance(names, dict) and UNKNOWN not in names and not self.uncertain
        if isinstance(source, FileText) and is_known and self._run_file(source.path, names):
            if not namespaces:
                self.scope.update(names)
            return
        for namespace in namespaces:
            spoil(namespace)
        if not namespaces:
            self.open_names_of(self.scope)
            self.open_names_of(self.names)

    def _run_file(self, path: str, names: dict[str, Any]) -> bool:
        """Run a file with `names` as its globals, as if no branch were around it. Return whether it is followed."""
        tree = self.files.tree(path)
        if tree is None:
            return False
        outer = self.names, self.scopes, self.uncertain, self.base, self.by_version, self.walked
        result, depth = self.result, self.depth
        self.names, self.scopes, self.uncertain, self.base, self.by_version, self.walked = names, [], 0, 0, 0, None
        try:
            with suppress(ReturnedError):  # a return outside of a function
                self.run(tree.body)
        finally:
            self.names, self.scopes, self.uncertain, self.base, self.by_version, self.walked = outer
            self.result, self.depth = result, depth
        return True


MAX_COPIED = 50
"""The maximum number of folders that commands copy."""
_INSTALLING = ("build_py", "install", "install_lib")
"""Commands that run when a wheel is built and decide about its files."""


@dataclass(slots=True)
class Additions(Modules):
    """Adds arguments of setup(). `copied` are the folders that the commands copy by copytree()."""

    copied: list[str] = field(default_factory=list)

    def call_function(self, function: ScriptFunction, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
        """Return the result of a function."""
        raise NotImplementedError

    def add_ffi_modules(self, keywords: dict[Any, Any]) -> None:
        """Add the modules that cffi builds to `ext_modules`. Items of `cffi_modules` are like `path_build.py:ffi`."""
        written = keywords["cffi_modules"]
        items = [written] if isinstance(written, str | Maybe) else written
        extensions = []
        for item in items if isinstance(items, list | tuple) else ():
            self.spend()
            path, _, name = str(item.value if isinstance(item, Maybe) else item).partition(":")
            module = self.module_at(path)
            builder = module.names.get(name) if module else None
            if isinstance(builder, ScriptFunction):
                builder = self.call_function(builder, [], {})
            if isinstance(builder, Ffi) and builder.module is not None:
                extensions.append(Extension(builder.module))
        if extensions:
            listed = keywords.get("ext_modules", ())
            keywords["ext_modules"] = [*(listed if isinstance(listed, list | tuple) else [UNKNOWN]), *extensions]

    def packages_extensions(self) -> list[Any]:
        """Return the result of get_extensions() in astropy's helpers: modules of each setup_package.py, and UNKNOWN."""
        extensions: list[Any] = [UNKNOWN]
        for path in sorted(self.files.contents):
            self.spend()
            if path.endswith("/setup_package.py") and (module := self.module_at(path)):
                function = module.names.get("get_extensions")
                if isinstance(function, ScriptFunction):
                    extend(self, extensions, self.call_function(function, [], {}))
        return extensions

    def copied_by_commands(self, commands: Any) -> list[str]:
        """Return the folders that the script's own commands copy when they run. They are installed at the same path."""
        outer, self.copied = self.copied, []
        for name in _INSTALLING if isinstance(commands, dict) else ():
            command = commands.get(name)
            command = command.value if isinstance(command, Maybe) else command
            for method in command.node.body if isinstance(command, ScriptClass) else ():
                self.spend()
                if isinstance(method, ast.FunctionDef) and method.name == "run":
                    self.call_function(ScriptFunction(method, command.names), [UNKNOWN], {})
        copied, self.copied = self.copied, outer
        return copied

    def copy_folder(self, arguments: list[Any]) -> None:
        """Follow `copytree(folder, target)`."""
        if arguments and isinstance(arguments[0], str) and len(self.copied) < MAX_COPIED:
            self.copied.append(arguments[0])
