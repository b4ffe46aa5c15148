"""The Python modules that CMakeLists.txt files build and install, as far as their names are literal."""

import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from itertools import islice

from pypi_assets.characters import is_identifier, lower
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.source_tree import MAX_TARGET_LENGTH, SourceTree, clean_path

_FIRST = re.compile(r"\s*+([^\s)]++)")
_MAKING = (
    "pybind11_add_module",
    "nanobind_add_module",
    "python_add_library",
    "python3_add_library",
    "python_extension_module",
)
"""The commands that make a Python module."""
_COMMANDS = {
    **dict.fromkeys(_MAKING, _FIRST),
    "add_subdirectory": _FIRST,
    "install": re.compile(r"\s*+TARGETS\s++([^)]{0,2000}?)\bDESTINATION\s++([^\s)]++)", re.IGNORECASE | re.ASCII),
    "project": _FIRST,
    "set": re.compile(r"\s*+(\w++)\s++([^\s)]++)\s*+\)", re.ASCII),
    "set_target_properties": re.compile(
        r"\s*+([^()]{1,200}?)\sPROPERTIES\s[^()]{0,2000}?\bOUTPUT_NAME\s++([^\s()]++)", re.ASCII
    ),
}
"""What is looked for in the arguments of each command."""
_NO_WORD = re.compile(r"\W", re.ASCII)
_VARIABLE = re.compile(r"\$\{(\w+)\}", re.ASCII)
_FUNCTION = re.compile(r"\b(function|macro)[ \t]*+\(\s*+(\w++)\s++(\w++)", re.ASCII)
MAX_FUNCTIONS = 200
MAX_FUNCTION_CHARACTERS = 4_000
MAX_CMAKE_FILES = 50
MAX_CMAKE_CHARACTERS = 200_000
"""Of all files together."""
MAX_VARIABLE_CHARACTERS = 200
"""A longer value is no folder, and could be inserted any number of times."""


@dataclass(slots=True)
class _Build:
    """What the CMakeLists.txt files read so far make: `targets` are Python modules, `installs` names of targets and
    where they go, `outputs` names of targets and of their files, `own` functions of the project's own that make a
    module."""

    tree: SourceTree
    variables: dict[str, str]
    targets: list[str] = field(default_factory=list)
    installs: list[tuple[str, str]] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    visited: set[str] = field(default_factory=set)
    characters: int = 0
    functions: int = 0


def cmake_modules(
    tree: SourceTree, package: str | None, variables: Mapping[str, str], source: str = "", inside: str = ""
) -> tuple[str, ...]:
    """The dotted names of the modules, by their targets' names, where CMake has `variables` and begins in the folder
    `source`. Folders that it installs to are relative to `inside`. What is not installed to a folder by name lies in
    `package`, and is no module where that is None."""
    build = _Build(tree, dict(variables))
    _read(build, source)
    if not build.targets:
        return ()
    destinations = {}
    for names, destination in build.installs:
        for name in names.split():
            folder = clean_path(_expanded(destination, build.variables).strip('"'))
            destinations[name] = f"{inside}/{folder}".strip("/") if len(folder) <= MAX_TARGET_LENGTH else folder
    modules = []
    for target in build.targets:
        where = destinations.get(target, package)
        name = _expanded(build.outputs.get(target, target), build.variables)
        if where is not None and len(where) <= MAX_TARGET_LENGTH:
            modules.append(f"{where}/{name}".lstrip("/").replace("/", "."))
    return tuple(module for module in dict.fromkeys(modules) if all(map(is_identifier, module.split("."))))


def _read(build: _Build, folder: str) -> None:
    """Reads the CMakeLists.txt in `folder`, and those in the folders that it adds."""
    path = f"{folder}/CMakeLists.txt".lstrip("/")
    if path in build.visited or len(build.visited) == MAX_CMAKE_FILES:
        return
    build.visited.add(path)
    text = decode_text(build.tree.files.get(path, b""), path)[0][: MAX_CMAKE_CHARACTERS - build.characters]
    build.characters += len(text)
    build.own |= _own_functions(build, text)
    for command, (first, *others) in _commands(text, build.own):
        if command == "install":
            build.installs.append((first, others[0]))
        elif command == "set_target_properties":
            build.outputs |= dict.fromkeys(first.split(), others[0].strip('"'))
        elif command == "add_subdirectory":
            added = _expanded(
                first.strip('"'), build.variables | {"CMAKE_CURRENT_SOURCE_DIR": ".", "CMAKE_SOURCE_DIR": "."}
            )
            _read(build, clean_path(f"{folder}/{added}"))
        elif command == "project":
            if "PROJECT_NAME" not in build.variables and len(first) <= MAX_VARIABLE_CHARACTERS:
                build.variables |= {"PROJECT_NAME": first, "CMAKE_PROJECT_NAME": first}
        elif command != "set":
            build.targets.append(first)
        elif len(others[0]) <= MAX_VARIABLE_CHARACTERS:
            build.variables[first] = others[0]


def _own_functions(build: _Build, text: str) -> set[str]:
    """The functions of the project's own, in lower case, that make a module of the name which they get first."""
    found = set()
    for definition in islice(_FUNCTION.finditer(text), MAX_FUNCTIONS - build.functions):
        build.functions += 1
        body = text[definition.end() : definition.end() + MAX_FUNCTION_CHARACTERS].partition(f"end{definition[1]}")[0]
        made = (inside[0] for command, inside in _commands(body, set()) if command in _MAKING)
        if f"${{{definition[3]}}}" in made:
            found.add(lower(definition[2]))
    return found


def _commands(text: str, own: Set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The commands in CMakeLists.txt that are looked at, in lower case, and what is found in their arguments; `own` are
    functions of the project's own among them."""
    at = end = 0
    for before in text.split("(")[:-1]:
        at += len(before) + 1
        words = before.rsplit(maxsplit=1)
        command = lower(_NO_WORD.split(words[-1])[-1]) if words else ""
        arguments = _FIRST if command in own else _COMMANDS.get(command)
        if at > end and arguments and (found := arguments.match(text, at)):
            end = found.end()
            yield command, found.groups()


def _expanded(text: str, variables: dict[str, str]) -> str:
    return _VARIABLE.sub(lambda name: variables.get(name[1], name[0]), text)
