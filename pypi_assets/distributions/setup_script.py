"""Read the literal arguments of setup() in a setup.py. The script is parsed and never run."""

import ast
import re
import warnings
from collections.abc import Mapping
from typing import Any

import msgspec

from pypi_assets.distributions.build_scripts import BuildScripts
from pypi_assets.distributions.script_text import NoScriptError, common_script, decode_script
from pypi_assets.distributions.setup_calls import setup_calls
from pypi_assets.distributions.setup_state import TooLongError
from pypi_assets.distributions.setup_values import ASSUMED, COPIED, UNKNOWN, Extension, FindPackages, Maybe, is_texts

__all__ = ["FindPackages", "SetupArguments", "read_setup_script"]

MAX_SOURCE_BYTES = 128 * 1024
MAX_EXT_PACKAGE_LENGTH = 250
"""The maximum length of the prefix of all extension modules. A longer one is not a real name."""
_MODULES = ("packages", "py_modules", "package_dir", "ext_modules")
"""Arguments that decide about modules."""
_SETUP = re.compile(rb"\bsetup\b")


_WITH_METADATA = frozenset({"egg_info", "dist_info"})
"""Commands that create the metadata."""


class SetupArguments(msgspec.Struct, frozen=True, array_like=True):
    """The arguments of setup(). None means that an argument is not literal or not given.

    `given` are the names of all given arguments. `is_complete` is True if there can be no others: the call has no
    `**unknown`, and there is only one kind of call. An argument missing in a complete call has the default of
    setuptools. `ext_modules` are dotted names, `cython_sources` the files and patterns passed to cythonize() without a
    name, and `cython_modules` those `ext_modules` that have Cython sources. Keys of `extras_require` are as written,
    such as `test` or `:python_version < "3"`. `problem` is the reason if nothing is known.

    `uncertain` names the arguments among `packages`, `py_modules`, `package_dir` and `ext_modules` that depend on a
    condition. All possible values are listed. It contains `environment` if environment variables decide. Then the
    values without these variables are listed. `partial` names arguments with a further, unknown part. Of these, only
    `ext_modules` and `package_data` have their known part here.

    `commands` are the keys of cmdclass, or None if they are not literal. `ext_package` is the prefix that the names of
    `ext_modules` already have. `copied` are folders that the script's own commands copy into the installation.
    `options` are the options of commands, by command, with extra_path. They are None if any of them is not literal.
    """

    name: str | None = None
    version: str | None = None
    python_requires: str | None = None
    packages: tuple[str | FindPackages, ...] | None = None
    py_modules: tuple[str, ...] | None = None
    package_dir: dict[str, str] | None = None
    package_data: dict[str, tuple[str, ...]] | None = None
    ext_modules: tuple[str, ...] | None = None
    cython_sources: tuple[str, ...] = ()
    cython_modules: frozenset[str] = frozenset()
    namespace_packages: tuple[str, ...] | None = None
    install_requires: tuple[str, ...] | None = None
    extras_require: dict[str, tuple[str, ...]] | None = None
    entry_points: dict[str, tuple[str, ...]] | str | None = None
    given: frozenset[str] = frozenset()
    is_complete: bool = False
    problem: str | None = None
    uncertain: frozenset[str] = frozenset()
    partial: frozenset[str] = frozenset()
    commands: tuple[str, ...] | None = ()
    ext_package: str | None = None
    copied: tuple[str, ...] = ()
    options: dict[str, dict[str, str]] | None = None

    @property
    def changes_metadata(self) -> bool:
        """Check whether a class of the project creates the metadata and so may change the values of the arguments."""
        return "distclass" in self.given or not _WITH_METADATA.isdisjoint(self.commands or ())


def read_setup_script(source: bytes | str, files: Mapping[str, bytes] | None = None) -> SetupArguments:
    """Return the literal arguments of the setup() call in `source`. Never raise an error: `problem` describes it.

    Print, except and raise statements of Python 2 are accepted. `files` are files that the script may import or run, by
    path relative to its folder. The time is linear in the size of the source.
    """
    content = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(content) > MAX_SOURCE_BYTES:
        return SetupArguments(problem=f"setup.py is larger than {MAX_SOURCE_BYTES} bytes")
    if not _SETUP.search(content):
        return SetupArguments(problem="setup.py doesn't call setup()")
    try:
        tree = _parse_file(content)
    except TooLongError:
        return SetupArguments(problem="setup.py is too long or too deep")
    if tree is None:
        return SetupArguments(problem="setup.py is not Python 3 syntax")
    scripts = BuildScripts(files or {}, _parse_file)
    arguments = _followed(tree, scripts)
    if scripts.followed and any(getattr(arguments, name) is None for name in _MODULES):
        without = _followed(tree, BuildScripts())
        return without if any(_is_lost(arguments, without, name) for name in _MODULES) else arguments
    return arguments


def _is_lost(arguments: SetupArguments, others: SetupArguments, name: str) -> bool:
    """Check whether only `others` has a value for an argument."""
    return getattr(arguments, name) is None and getattr(others, name) is not None


def _followed(tree: ast.Module, scripts: BuildScripts) -> SetupArguments:
    """Return the arguments of setup() if the script uses `scripts`."""
    try:
        calls = setup_calls(tree, scripts)
    except TooLongError:
        return SetupArguments(problem="setup.py is too long or too deep")
    if not calls:
        return SetupArguments(problem="setup.py doesn't call setup() where it can be followed")
    return _agreed([_arguments(call) for call in calls])


def _parse_file(content: bytes) -> ast.Module | None:
    """Return the syntax tree of a script of Python 3 or 2, or None if it is neither. Raise TooLongError."""
    text = decode_script(content)
    return _parse(text) or _parse(_as_python3(text))


def _parse(text: str) -> ast.Module | None:
    """Return the syntax tree of `text`, or None if it is not valid in all supported versions. Raise TooLongError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the script may have invalid escapes such as "\d"
        try:
            return ast.parse(common_script(text))
        except (NoScriptError, SyntaxError, ValueError):
            return None
        except (RecursionError, MemoryError) as error:  # an interpreter with less stack than all known ones
            raise TooLongError from error


_EACH_LINE = re.MULTILINE | re.ASCII
_START = r"^([ \t]*+(?:(?:if|elif|else|for|while|try|except|finally)\b[^\"'#\n]*:[ \t]*+)?)"
"""Where a statement begins: at the start of a line, or after the colon of another statement."""
_PYTHON2 = (
    (re.compile(_START + r"print[ \t]*+>>[^,\n]*+,?", _EACH_LINE), r"\1_ = 0,"),
    (re.compile(_START + r"print[ \t]++(?=[^=(\s>])", _EACH_LINE), r"\1_ = "),
    (re.compile(_START + r"exec[ \t]++[^=(\s].*+$", _EACH_LINE), r"\1pass"),
    (
        re.compile(r"^([ \t]*+except[ \t]++(?:\([^()\n]*+\)|[^(:,\n]++)),[ \t]*+(\w++)[ \t]*+:", _EACH_LINE),
        r"\1 as \2:",
    ),
    (re.compile(_START + r"raise[ \t]++([\w.]++),[ \t]*+", _EACH_LINE), r"\1raise \2; _ = "),
    (re.compile(r"\b0([0-7]++)\b(?=[ \t]*+[,)])", re.ASCII), r"0o\1"),
    (re.compile(r"\b[uU]([rR][\"'])", re.ASCII), r"\1"),
    (re.compile(r"`([^`\n]++)`"), r"(\1)"),
)
_UNEQUAL = re.compile(r"(?<=[\w)\]\"'])[ \t]?<>[ \t]?(?=[\w(\"'])", re.ASCII)
_TAB = 8
"""The columns of a tab in Python 2. Python 3 rejects indentation that depends on them."""


def _as_python3(text: str) -> str:
    """Return the text with the most frequent statements of Python 2 rewritten. Calls of setup() need no change."""
    text = text.expandtabs(_TAB)
    for pattern, replacement in _PYTHON2:
        text = pattern.sub(replacement, text)
    return text if "barry_as_FLUFL" in text else _UNEQUAL.sub(" != ", text)  # newer parsers then reject `!=`


def _arguments(call: dict[Any, Any]) -> SetupArguments:
    uncertain = {"environment"} if ASSUMED in call else set[str]()
    partial: set[str] = set()
    extensions = _extensions(call, uncertain, partial)
    certain = {name: _certain(name, call.get(name), uncertain) for name in ("packages", "py_modules", "package_dir")}
    ext_package = _text(call.get("ext_package"))
    ext_package = ext_package if ext_package and len(ext_package) <= MAX_EXT_PACKAGE_LENGTH else None
    above = f"{ext_package}." if ext_package else ""
    commands = _certain("cmdclass", call.get("cmdclass", {}), set())
    return SetupArguments(
        name=_text(call.get("name")),
        version=_text(call.get("version")),
        python_requires=_text(call.get("python_requires")),
        packages=_packages(certain["packages"]),
        py_modules=_texts(certain["py_modules"]),
        package_dir=_text_dict(certain["package_dir"]),
        package_data=_known_lists(call.get("package_data"), partial),
        ext_modules=None if extensions is None else tuple(f"{above}{each.name}" for each in extensions if each.name),
        cython_sources=tuple(s for each in extensions or () if not each.name for s in each.sources),
        cython_modules=frozenset(
            f"{above}{each.name}"
            for each in extensions or ()
            if each.name and any(s.endswith(".pyx") for s in each.sources)
        ),
        namespace_packages=_texts(call.get("namespace_packages")),
        install_requires=_lines(call.get("install_requires")),
        extras_require=_lists(call.get("extras_require")),
        entry_points=_text(call.get("entry_points")) or _lists(call.get("entry_points")),
        given=frozenset(name for name in call if isinstance(name, str)),
        is_complete=UNKNOWN not in call,
        uncertain=frozenset(uncertain),
        partial=frozenset(partial),
        commands=tuple(commands) if isinstance(commands, dict) and UNKNOWN not in commands else None,
        ext_package=ext_package,
        copied=tuple(call.get(COPIED, ())),
        options=_options(call.get("options"), call.get("extra_path")),
    )


def _certain(name: str, value: Any, uncertain: set[str]) -> Any:
    """Return `value` as if each condition in it were true. If it has any, add `name` to `uncertain`."""
    if isinstance(value, Maybe):
        uncertain.add(name)
        return _certain(name, value.value, uncertain)
    if isinstance(value, list | tuple) and any(isinstance(item, Maybe) for item in value):
        uncertain.add(name)
        return [item.value if isinstance(item, Maybe) else item for item in value]
    if isinstance(value, dict) and any(isinstance(item, Maybe) for item in value.values()):
        uncertain.add(name)
        return {key: item.value if isinstance(item, Maybe) else item for key, item in value.items()}
    return value


def _agreed(found: list[SetupArguments]) -> SetupArguments:
    """Return the values on which all calls of setup() agree. Scripts have several calls for different cases.

    Packages and modules of all calls are combined.
    """
    first = found[0]
    if len(found) == 1:
        return first
    agreed = {
        name: getattr(first, name)
        for name in SetupArguments.__struct_fields__
        if all(getattr(other, name) == getattr(first, name) for other in found)
    }
    differing = [name for name in ("packages", "py_modules", "ext_modules") if name not in agreed]
    for name in differing:
        values = [() if name not in each.given and each.is_complete else getattr(each, name) for each in found]
        if None not in values:
            agreed[name] = tuple(dict.fromkeys(item for value in values for item in value))
    return SetupArguments(
        **agreed
        | {
            "given": frozenset(name for each in found for name in each.given),
            "is_complete": all(each.is_complete for each in found),
            "uncertain": frozenset(name for each in found for name in each.uncertain) | frozenset(differing),
            "partial": frozenset(name for each in found for name in each.partial),
            "cython_sources": tuple(dict.fromkeys(source for each in found for source in each.cython_sources)),
            "cython_modules": frozenset(name for each in found for name in each.cython_modules),
        }
    )


def _extensions(call: dict[Any, Any], uncertain: set[str], partial: set[str]) -> list[Extension] | None:
    """Return the known extension modules, or None if none are given or all are unknown."""
    given = [call[name] for name in ("ext_modules", "rust_extensions") if name in call]
    listed = [_certain("ext_modules", value, uncertain) for value in given]
    items: list[Any] = [item for each in listed for item in (each if isinstance(each, list | tuple) else [UNKNOWN])]
    known = [item for item in items if isinstance(item, Extension)]
    if len(known) < len(items):
        partial.add("ext_modules")
    if not listed or (items and not known):
        return None
    return [Extension(None, item.sources) if item.name and "*" in item.name else item for item in known]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if is_texts(value) else None


def _lines(value: Any) -> tuple[str, ...] | None:
    """Return requirements from a list of strings or one string, with one requirement a line."""
    texts = _texts(value)
    return None if texts is None else tuple(line for text in texts for line in text.splitlines() if line.strip())


def _packages(value: Any) -> tuple[str | FindPackages, ...] | None:
    items = (value,) if isinstance(value, str) else value
    known = isinstance(items, list | tuple) and all(isinstance(item, str | FindPackages) for item in items)
    return tuple(items) if known else None


def _text_dict(value: Any) -> dict[str, str] | None:
    known = isinstance(value, dict) and all(isinstance(item, str) for pair in value.items() for item in pair)
    return dict(value) if known else None


def _options(value: Any, extra_path: Any) -> dict[str, dict[str, str]] | None:
    """Return the options of commands in the form of setup.cfg.

    An option with the value None has its default and is skipped. The argument extra_path is an option of `install`.
    """
    options: dict[str, dict[str, str]] = {}
    if extra_path is not None:
        if (names := _texts(extra_path)) is None:
            return None
        options["install"] = {"extra_path": ",".join(names)}
    if value is None:
        return options or None
    if not isinstance(value, dict):
        return None
    for command, values in value.items():
        if not isinstance(command, str) or not isinstance(values, dict):
            return None
        for option, each in values.items():
            if not isinstance(option, str) or not isinstance(each, str | int | None):
                return None
        options[command] = options.get(command, {}) | {
            option: str(each) for option, each in values.items() if each is not None
        }
    return options


def _known_lists(value: Any, partial: set[str]) -> dict[str, tuple[str, ...]] | None:
    """Return the known items of package_data, since each one adds files. If others are unknown, add it to `partial`."""
    if not isinstance(value, dict):
        return None
    known: dict[str, tuple[str, ...]] = {}
    for key, each in value.items():
        listed = _certain("", each, set())
        items = (listed,) if isinstance(listed, str) else listed if isinstance(listed, list | tuple) else (UNKNOWN,)
        texts = tuple(item for item in items if isinstance(item, str))
        if len(texts) < len(items):
            partial.add("package_data")
        if isinstance(key, str):
            known[key] = texts
    return known


def _lists(value: Any) -> dict[str, tuple[str, ...]] | None:
    if not isinstance(value, dict) or UNKNOWN in value:
        return None
    lists = {key: _lines(each) for key, each in value.items()}
    return None if None in lists.values() else {key: each for key, each in lists.items() if each is not None}


SETUP_SCRIPT_VERSION = 7
"""The version of these rules. It is increased when the same setup.py would lead to other arguments or other bytes."""
_encoder = msgspec.msgpack.Encoder()


class _KeptScript(msgspec.Struct, array_like=True):
    version: int
    arguments: msgspec.Raw


_kept_decoder = msgspec.msgpack.Decoder(_KeptScript)
_arguments_decoder = msgspec.msgpack.Decoder(SetupArguments)


def keep_arguments(source: bytes, files: Mapping[str, bytes] | None = None) -> bytes:
    """Return the arguments in the setup.py `source`, which may use `files`, as MessagePack: `[version, arguments]`.

    The result is empty if it would be longer than `source`, as for lists made by repetition, or if there was a problem,
    which is found again as quickly.
    """
    arguments = read_setup_script(source, files)
    if arguments.problem is not None:
        return b""
    # Sets are sorted, so that the same source always gives the same bytes.
    values = [sorted(value) if isinstance(value, frozenset) else value for value in msgspec.structs.astuple(arguments)]
    encoded = _encoder.encode((SETUP_SCRIPT_VERSION, values))
    return encoded if len(encoded) <= len(source) else b""


def kept_arguments(kept: bytes) -> SetupArguments | None:
    """Return the arguments that `keep_arguments` stored, or None if there are none or they follow older rules."""
    if not kept:
        return None
    script = _kept_decoder.decode(kept)
    return _arguments_decoder.decode(script.arguments) if script.version == SETUP_SCRIPT_VERSION else None
