"""Find the Python modules that CMakeLists.txt files build and install, if their names are literal.

The files are interpreted as CMake does it: variables, lists, loops, the project's own functions, and subdirectories. If
a condition depends on anything else, such as the platform or a found library, all its branches count.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise

from pypi_assets.characters import is_digits, is_identifier, lower
from pypi_assets.distributions.backends.cmake_installs import BuildTarget, Installs
from pypi_assets.distributions.backends.cmake_text import Argument, Command, expanded, read_commands, source_path, truth
from pypi_assets.distributions.members import Files, Folder
from pypi_assets.distributions.metadata import decode_text
from pypi_assets.distributions.path_patterns import Patterns, matching_paths
from pypi_assets.distributions.source_tree import SourceTree

_MAKING = frozenset(
    {
        "pybind11_add_module",
        "nanobind_add_module",
        "python_add_library",
        "python3_add_library",
        "python_add_module",
        "python_extension_module",
    }
)
"""Commands that build a Python module."""
_KINDS = {
    "SHARED": "lib",
    "MODULE": "lib",
    "STATIC": None,
    "OBJECT": None,
    "INTERFACE": None,
    "ALIAS": None,
    "IMPORTED": None,
}
"""The prefix of the loadable file that each kind of add_library() builds, or None if it builds none."""
_STANDARD_FOLDERS = {
    "CMAKE_INSTALL_BINDIR": "bin",
    "CMAKE_INSTALL_INCLUDEDIR": "include",
    "CMAKE_INSTALL_DATAROOTDIR": "share",
    "CMAKE_INSTALL_DATADIR": "share",
}
"""Variables that the module GNUInstallDirs sets. The folder of libraries is missing: it depends on the platform."""
_OTHERS = "WIN32 MSVC MINGW CYGWIN APPLE ANDROID IOS EMSCRIPTEN"
_LINUX = dict.fromkeys(_OTHERS.split(), "OFF") | {"UNIX": "ON", "LINUX": "ON"}
"""The platform variables on Linux.

A branch for other platforms still adds modules. Its names for targets do not replace the names used on all platforms.
"""
_ROOTS = (("SOURCE", "source"), ("BINARY", "binary"))
MAX_CMAKE_FILES = 50
MAX_CMAKE_CHARACTERS = 200_000
"""The maximum total length of all files."""
MAX_STEPS = 100_000
"""The maximum total number of commands, arguments and copied variables."""
MAX_VARIABLE_CHARACTERS = 4_000
"""The maximum length of a value. Without it, variables that contain one another could take unlimited memory."""
MAX_DEPTH = 30


class _CMakeTooLongError(Exception):
    """The files need more than MAX_STEPS steps, or their blocks and calls nest too deeply."""


@dataclass(frozen=True, slots=True)
class CMakeModules:
    """The modules that CMake installs to site-packages.

    `files` are modules in the sdist or written by the build. `extensions` are the dotted names of compiled modules.
    """

    files: Files
    extensions: tuple[str, ...]


@dataclass(slots=True)
class _Scope:
    """The variables of a file or a function, and the folder in which its commands run.

    `is_sure` is False inside a branch whose condition is unknown. `is_elsewhere` is True inside a branch for platforms
    other than Linux.
    """

    build: "_CMakeBuild"
    variables: dict[str, str]
    folder: str
    above: "_Scope | None" = None
    is_sure: bool = True
    is_elsewhere: bool = False


@dataclass(slots=True)
class _CMakeBuild:
    """The state after the files read so far.

    `named` are the targets defined so far. `doubtful` are the variables set under an unknown condition.
    """

    tree: SourceTree
    installs: Installs
    functions: dict[str, tuple[list[Command], int, int]] = field(default_factory=dict)
    visited: set[str] = field(default_factory=set)
    named: set[str] = field(default_factory=set)
    doubtful: set[str] = field(default_factory=set)
    characters: int = 0
    steps: int = 0
    depth: int = 0

    def spend(self, steps: int) -> None:
        self.steps += steps
        if self.steps > MAX_STEPS or self.depth > MAX_DEPTH:
            raise _CMakeTooLongError


def cmake_modules(
    tree: SourceTree,
    package: str | None,
    variables: Mapping[str, str],
    source: str = "",
    inside: str = "",
    components: tuple[str, ...] = (),
) -> CMakeModules:
    """Return the modules that CMake builds and installs when it runs in the folder `source` with `variables`.

    Install folders are relative to `inside`. A module without an install folder belongs to `package`, or is skipped if
    that is None. If `components` are given, only installs of these components count.
    """
    build = _CMakeBuild(tree, Installs(tree, package, inside, components))
    with suppress(_CMakeTooLongError):  # keep the modules found so far
        _read(build, source, _Scope(build, dict(variables), source))
    return CMakeModules(build.installs.files(), tuple(filter(_is_name, dict.fromkeys(build.installs.modules()))))


def _is_name(module: str) -> bool:
    return all(map(is_identifier, module.split(".")))


def _read(build: _CMakeBuild, folder: str, scope: _Scope) -> None:
    """Run the CMakeLists.txt in `folder`."""
    path = f"{folder}/CMakeLists.txt".lstrip("/")
    if path in build.visited or len(build.visited) == MAX_CMAKE_FILES:
        return
    build.visited.add(path)
    text = decode_text(build.tree.files.get(path, b""), path)[0][: MAX_CMAKE_CHARACTERS - build.characters]
    build.characters += len(text)
    for name, value in (("CURRENT_SOURCE", "source"), ("CURRENT_BINARY", "binary"), ("CURRENT_LIST", "source")):
        scope.variables[f"CMAKE_{name}_DIR"] = f"<{value}>/{folder}".rstrip("/")
    for name, value in _ROOTS:
        scope.variables.setdefault(f"CMAKE_{name}_DIR", f"<{value}>/{folder}".rstrip("/"))
    commands = read_commands(text)
    _run(build, scope, commands, 0, len(commands))


def _run(build: _CMakeBuild, scope: _Scope, commands: list[Command], start: int, end: int) -> bool:
    """Run the commands from `start` to `end`. Return False if return() ended them."""
    build.depth += 1
    at = start
    while at < end:
        command = commands[at]
        build.spend(1 + len(command.arguments))
        if command.name == "return":
            if scope.is_sure:
                build.depth -= 1
                return False
        elif command.name == "if":
            if not _run_branches(build, scope, commands, at):
                build.depth -= 1
                return False
        elif command.name == "foreach":
            _run_loop(build, scope, commands, at)
        elif command.name in {"function", "macro"} and command.arguments:
            if len(build.functions) < MAX_STEPS // 100:
                build.functions[lower(command.arguments[0].text)] = (commands, at, command.end)
        elif command.name != "while":
            _execute(build, scope, command)
        at = max(at, command.end) + 1
    build.depth -= 1
    return True


def _run_branches(build: _CMakeBuild, scope: _Scope, commands: list[Command], at: int) -> bool:
    """Run the branches of an `if` whose conditions are true or unknown.

    Return False if return() ended the branch that is certainly taken.
    """
    command = commands[at]
    starts = [at, *command.branches, command.end]
    was_sure, was_elsewhere = scope.is_sure, scope.is_elsewhere
    for start, end in pairwise(starts):
        branch = commands[start]
        holds = True
        if branch.name != "else":
            condition = truth(branch.arguments, scope.variables, build.doubtful, partial(_exists, scope))
            if condition is False:
                continue
            holds = condition is True
        if (
            not holds
            and truth(branch.arguments, scope.variables | _LINUX, build.doubtful, partial(_exists, scope)) is False
        ):
            scope.is_elsewhere = True
        scope.is_sure = scope.is_sure and holds
        goes_on = _run(build, scope, commands, start + 1, end)
        scope.is_elsewhere = was_elsewhere
        if holds:
            scope.is_sure = was_sure
            return goes_on
    scope.is_sure = was_sure
    return True


def _exists(scope: _Scope, kind: str, name: str) -> bool | None:
    """Check whether a target is defined so far, or whether the sdist has a file or folder of this name.

    Return None if that is unknown: target names with `::` belong to other projects.
    """
    if kind == "TARGET":
        return None if "::" in name or "$" in name else name in scope.build.named
    if (path := source_path(scope.folder, name)) is None:
        return None
    tree = scope.build.tree
    scope.build.spend(len(tree.members) // 16)
    folder, _, last = path.rpartition("/")
    return last in tree.members.get(f"{tree.top}{folder}".rstrip("/"), Folder()) or tree.has_folder(path)


def _run_loop(build: _CMakeBuild, scope: _Scope, commands: list[Command], at: int) -> None:
    """Run the commands of a foreach() for each known item."""
    texts = _texts(build, scope, commands[at].arguments)
    if not texts:
        return
    name, *items = texts
    if "RANGE" in items[:1]:
        return
    if items[:1] == ["IN"]:
        listed: list[str] = []
        kind = ""
        for item in items[1:]:
            if item in {"LISTS", "ITEMS"}:
                kind = item
            else:
                listed += _split(scope.variables.get(item, "")) if kind == "LISTS" else [item]
        items = listed
    before = scope.variables.get(name)
    for item in items:
        scope.variables[name] = item
        _run(build, scope, commands, at + 1, commands[at].end)
    if before is None:
        scope.variables.pop(name, None)
    else:
        scope.variables[name] = before


def _call(build: _CMakeBuild, scope: _Scope, name: str, texts: list[str]) -> None:
    """Run a function or macro that the project defines."""
    commands, at, end = build.functions[name]
    parameters = [argument.text for argument in commands[at].arguments[1:]]
    build.spend(len(scope.variables) + len(texts))
    values = dict(zip(parameters, texts, strict=False))
    values |= {f"ARGV{index}": text for index, text in enumerate(texts)}
    values |= {"ARGV": _joined(texts), "ARGN": _joined(texts[len(parameters) :]), "ARGC": str(len(texts))}
    inner = _Scope(build, scope.variables | values, scope.folder, scope, scope.is_sure)
    del build.functions[name]  # removed while it runs, so that it cannot recurse
    _run(build, inner, commands, at + 1, end)
    build.functions[name] = (commands, at, end)
    if commands[at].name == "macro":
        scope.variables |= {key: value for key, value in inner.variables.items() if key not in values}


def _texts(build: _CMakeBuild, scope: _Scope, arguments: list[Argument]) -> list[str]:
    """Return the arguments with their variables replaced and lists split into items."""
    texts = []
    for argument in arguments:
        if argument.raw:
            texts.append(argument.text[:MAX_VARIABLE_CHARACTERS])
            continue
        text = expanded(argument.text, scope.variables, MAX_VARIABLE_CHARACTERS)
        build.spend(len(text) // 64)
        texts += [text] if argument.quoted else _split(text)
    return texts


def _split(text: str) -> list[str]:
    return [item for item in text.split(";") if item]


def _joined(texts: list[str]) -> str:
    return ";".join(texts)[:MAX_VARIABLE_CHARACTERS]


def _execute(build: _CMakeBuild, scope: _Scope, command: Command) -> None:
    texts = _texts(build, scope, command.arguments)
    if command.name in build.functions:
        _call(build, scope, command.name, texts)
    elif command.name in _MAKING:
        if texts and "STATIC" not in texts[1:2]:
            build.named.add(texts[0])
            build.installs.targets[texts[0]] = BuildTarget(prefix="", is_module=True)
    elif command.name == "install":
        build.installs.add(texts, scope.folder)
    elif command.name in _COMMANDS and texts:
        _COMMANDS[command.name](scope, texts)


def _set(scope: _Scope, texts: list[str]) -> None:
    name, *values = texts
    is_kept = "CACHE" in values and "FORCE" not in values and name in scope.variables
    goes_above = values[-1:] == ["PARENT_SCOPE"]
    if "CACHE" in values:
        values = values[: values.index("CACHE")]
    if goes_above and scope.above:
        scope.above.variables[name] = _joined(values[:-1])
    elif not is_kept:
        (scope.build.doubtful.discard if scope.is_sure else scope.build.doubtful.add)(name)
        if not scope.is_elsewhere or name not in scope.variables:
            scope.variables[name] = _joined(values)


def _option(scope: _Scope, texts: list[str]) -> None:
    scope.variables.setdefault(texts[0], texts[2] if len(texts) > 2 else "OFF")


def _list(scope: _Scope, texts: list[str]) -> None:
    if texts[0] in {"APPEND", "PREPEND"} and len(texts) > 2:
        old = _split(scope.variables.get(texts[1], ""))
        new = [*old, *texts[2:]] if texts[0] == "APPEND" else [*texts[2:], *old]
        scope.build.spend(len(new))
        scope.variables[texts[1]] = _joined(new)


def _string(scope: _Scope, texts: list[str]) -> None:
    match texts:
        case ["TOLOWER", text, name]:
            scope.variables[name] = lower(text)
        case ["REPLACE", old, new, name, *parts] if old:
            scope.variables[name] = "".join(parts).replace(old, new)[:MAX_VARIABLE_CHARACTERS]
        case ["APPEND", name, *parts]:
            scope.variables[name] = f"{scope.variables.get(name, '')}{''.join(parts)}"[:MAX_VARIABLE_CHARACTERS]
        case ["CONCAT", name, *parts]:
            scope.variables[name] = "".join(parts)[:MAX_VARIABLE_CHARACTERS]


def _component(scope: _Scope, texts: list[str]) -> None:
    """Run get_filename_component(), which returns a part of a path."""
    if len(texts) < 3:
        return
    folder, _, last = texts[1].rpartition("/")
    stem = last.partition(".")[0]
    parts = {
        "NAME": last,
        "NAME_WE": stem,
        "NAME_WLE": last.rpartition(".")[0] or last,
        "DIRECTORY": folder,
        "PATH": folder,
    }
    if texts[2] in parts:
        scope.variables[texts[0]] = parts[texts[2]]


def _file(scope: _Scope, texts: list[str]) -> None:
    """Run file(GLOB ...), which finds the files of the sdist that match patterns."""
    if texts[0] not in {"GLOB", "GLOB_RECURSE"} or len(texts) < 3:
        return
    name, *patterns = texts[1:]
    base = "<source>"
    if "RELATIVE" in patterns[:-1]:
        index = patterns.index("RELATIVE")
        base = patterns[index + 1]
        del patterns[index : index + 2]
    patterns = [pattern for pattern in patterns if pattern not in {"CONFIGURE_DEPENDS", "LIST_DIRECTORIES"}]
    top = len(scope.build.tree.top)
    matches: list[str] = []
    for pattern in patterns:
        if (path := source_path(scope.folder, pattern)) is None:
            continue
        if texts[0] == "GLOB_RECURSE":
            above, _, last = path.rpartition("/")
            path = f"{above}/**/{last}".lstrip("/")
        fixed = path.partition("*")[0].rpartition("/")[0]
        paths = [
            f"{folder[top:]}/{file}".lstrip("/")
            for folder, inside in scope.build.tree.members.items()
            if f"{folder[top:]}/".startswith(f"{fixed}/") or not fixed
            for file in inside.names
        ]
        scope.build.spend(len(scope.build.tree.members) // 4 + len(paths) // 4)
        matches += matching_paths(paths, [path], Patterns.FILE_GLOB, scope.build.tree.effort)
    start = (source_path("", base) or "") if base != "<source>" else None
    cut = len(start) + 1 if start else 0
    scope.variables[name] = _joined(
        [each[cut:] if start is not None else f"<source>/{each}" for each in sorted(matches)]
    )


def _project(scope: _Scope, texts: list[str]) -> None:
    for variable in ("PROJECT_NAME", "CMAKE_PROJECT_NAME")[: 1 if "CMAKE_PROJECT_NAME" in scope.variables else 2]:
        scope.variables[variable] = texts[0]
    for name, root in _ROOTS:
        value = f"<{root}>/{scope.folder}".rstrip("/")
        scope.variables |= {f"PROJECT_{name}_DIR": value, f"{texts[0]}_{name}_DIR": value}


def _add_subdirectory(scope: _Scope, texts: list[str]) -> None:
    if (folder := source_path(scope.folder, texts[0])) is not None:
        scope.build.spend(len(scope.variables))
        _read(scope.build, folder, _Scope(scope.build, dict(scope.variables), folder, scope, scope.is_sure))


def _add_library(scope: _Scope, texts: list[str]) -> None:
    scope.build.named.add(texts[0])
    prefix = _KINDS.get(texts[1]) if len(texts) > 1 else None
    if prefix is not None and "IMPORTED" not in texts:
        scope.build.installs.targets.setdefault(texts[0], BuildTarget(prefix=prefix))


def _properties(scope: _Scope, texts: list[str]) -> None:
    """Run set_target_properties(), which may set the name of a target's file and its prefix."""
    if "PROPERTIES" not in texts or scope.is_elsewhere:
        return
    at = texts.index("PROPERTIES")
    pairs = dict(zip(texts[at + 1 :: 2], texts[at + 2 :: 2], strict=False))
    for target in texts[:at]:
        scope.build.installs.set_properties(target, pairs)


def _property(scope: _Scope, texts: list[str]) -> None:
    if texts[0] == "TARGET" and "PROPERTY" in texts[:-2] and not scope.is_elsewhere:
        at = texts.index("PROPERTY")
        for target in texts[1:at]:
            scope.build.installs.set_properties(target, {texts[at + 1]: texts[at + 2]})


def _include(scope: _Scope, texts: list[str]) -> None:
    if texts[0] == "GNUInstallDirs":
        for name, value in _STANDARD_FOLDERS.items():
            scope.variables.setdefault(name, value)


def _parse_arguments(scope: _Scope, texts: list[str]) -> None:
    """Run cmake_parse_arguments(), which sets variables for the keywords that a function was called with."""
    if texts[0] == "PARSE_ARGV" and len(texts) > 2:
        given = _split(scope.variables.get("ARGV", ""))
        texts = [*texts[2:], *given[int(texts[1][:4]) if is_digits(texts[1][:4]) else 0 :]]
    if len(texts) < 4:
        return
    prefix, options, singles, multiples, *rest = texts
    flags, ones, many = set(_split(options)), set(_split(singles)), set(_split(multiples))
    scope.variables |= {f"{prefix}_{flag}": "FALSE" for flag in flags}
    keyword, values = "UNPARSED_ARGUMENTS", dict[str, list[str]]()
    for text in rest:
        if text in flags:
            scope.variables[f"{prefix}_{text}"] = "TRUE"
            keyword = "UNPARSED_ARGUMENTS"
        elif text in ones or text in many:
            keyword = text
        else:
            values.setdefault(keyword, []).append(text)
            keyword = "UNPARSED_ARGUMENTS" if keyword in ones else keyword
    scope.variables |= {f"{prefix}_{key}": _joined(each) for key, each in values.items()}


_COMMANDS: dict[str, Callable[[_Scope, list[str]], None]] = {
    "add_library": _add_library,
    "add_subdirectory": _add_subdirectory,
    "cmake_parse_arguments": _parse_arguments,
    "file": _file,
    "get_filename_component": _component,
    "include": _include,
    "list": _list,
    "option": _option,
    "project": _project,
    "set": _set,
    "set_property": _property,
    "set_target_properties": _properties,
    "string": _string,
}
