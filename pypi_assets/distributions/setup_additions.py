"""What plug-ins of setuptools, and a project's own commands, add to what a setup.py passes to setup()."""

import ast
from dataclasses import dataclass, field
from typing import Any

from pypi_assets.distributions.setup_modules import Modules
from pypi_assets.distributions.setup_operations import extend
from pypi_assets.distributions.setup_values import UNKNOWN, Extension, Ffi, Maybe, ScriptClass, ScriptFunction

MAX_COPIED = 50
"""Folders that commands copy, at most."""
_INSTALLING = ("build_py", "install", "install_lib")
"""Commands that run in a build of a wheel and lay out what is in it."""


@dataclass(slots=True)
class Additions(Modules):
    """`copied` are the folders that the commands which run copy by copytree()."""

    copied: list[str] = field(default_factory=list)

    def call_function(self, function: ScriptFunction, arguments: list[Any], keywords: dict[Any, Any]) -> Any:
        """What a function returns."""
        raise NotImplementedError

    def add_ffi_modules(self, keywords: dict[Any, Any]) -> None:
        """Adds the modules that cffi builds to `ext_modules`: `cffi_modules` has items such as `path_build.py:ffi`."""
        written = keywords["cffi_modules"]
        items = [written] if isinstance(written, str | Maybe) else written
        found = []
        for item in items if isinstance(items, list | tuple) else ():
            self.spend()
            path, _, name = str(item.value if isinstance(item, Maybe) else item).partition(":")
            module = self.module_at(path)
            builder = module.names.get(name) if module else None
            if isinstance(builder, ScriptFunction):
                builder = self.call_function(builder, [], {})
            if isinstance(builder, Ffi) and builder.module is not None:
                found.append(Extension(builder.module))
        if found:
            listed = keywords.get("ext_modules", ())
            keywords["ext_modules"] = [*(listed if isinstance(listed, list | tuple) else [UNKNOWN]), *found]

    def packages_extensions(self) -> list[Any]:
        """get_extensions() of astropy's helpers: the extension modules of each setup_package.py, and each .pyx."""
        found: list[Any] = [UNKNOWN]
        for path in sorted(self.files.contents):
            self.spend()
            if path.endswith("/setup_package.py") and (module := self.module_at(path)):
                function = module.names.get("get_extensions")
                if isinstance(function, ScriptFunction):
                    extend(self, found, self.call_function(function, [], {}))
        return found

    def copied_by_commands(self, commands: Any) -> list[str]:
        """The folders that the script's own commands copy when they run; they are installed at the same path."""
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
        """`copytree(folder, target)`"""
        if arguments and isinstance(arguments[0], str) and len(self.copied) < MAX_COPIED:
            self.copied.append(arguments[0])
