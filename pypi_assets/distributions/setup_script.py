"""Reads the literal arguments of setup() in a setup.py. The script is read as syntax and never run."""

import ast
import re
import warnings
from typing import Any

import msgspec

from pypi_assets.distributions.script_text import NoScriptError, common_script, decode_script
from pypi_assets.distributions.setup_calls import setup_calls
from pypi_assets.distributions.setup_state import TooLongError
from pypi_assets.distributions.setup_values import UNKNOWN, Extension, FindPackages, is_texts

__all__ = ["FindPackages", "SetupArguments", "read_setup_script"]

MAX_SOURCE_BYTES = 128 * 1024
_SETUP = re.compile(rb"\bsetup\b")


class SetupArguments(msgspec.Struct, frozen=True, array_like=True):
    """The arguments of setup(); None is what is not literal, or not given at all.

    `given` holds the names of all arguments that are given, `is_complete` is whether these are all (there is no
    `**unknown`, and exactly one kind of call): what a complete call doesn't give, has setuptools' default.
    `ext_modules` are dotted names, `cython_sources` the files and patterns that are given to cythonize() without a
    name, `cython_modules` those of `ext_modules` whose sources are Cython's. Keys of `extras_require` are as written,
    such as `test` or `:python_version < "3"`. `problem` is the reason where nothing is known.
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


def read_setup_script(source: bytes | str) -> SetupArguments:
    """The literal arguments of the setup() call in `source`. Never raises: `problem` describes what is wrong.

    Python 2's print, except and raise statements are read over. Time is linear in the size of the source.
    """
    content = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else source
    if len(content) > MAX_SOURCE_BYTES:
        return SetupArguments(problem=f"setup.py is larger than {MAX_SOURCE_BYTES} bytes")
    if not _SETUP.search(content):
        return SetupArguments(problem="setup.py doesn't call setup()")
    text = decode_script(content)
    try:
        tree = _parse(text) or _parse(_as_python3(text))
        if tree is None:
            return SetupArguments(problem="setup.py is not Python 3 syntax")
        calls = setup_calls(tree)
    except TooLongError:
        return SetupArguments(problem="setup.py is too long or too deep")
    if not calls:
        return SetupArguments(problem="setup.py doesn't call setup() where it can be followed")
    return _agreed([_arguments(call) for call in calls])


def _parse(text: str) -> ast.Module | None:
    """The syntax tree of `text`; None where not every supported Python reads it. Raises TooLongError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on escapes such as "\d"; they are the author's
        try:
            return ast.parse(common_script(text))
        except (NoScriptError, SyntaxError, ValueError):
            return None
        except (RecursionError, MemoryError) as error:  # of an interpreter with less room than any that is known
            raise TooLongError from error


_EACH_LINE = re.MULTILINE | re.ASCII
_PYTHON2 = (
    (re.compile(r"^([ \t]*)(?:print|exec)[ \t]+[^=(\s].*$|^([ \t]*)print[ \t]*>>.*$", _EACH_LINE), r"\1\2pass"),
    (re.compile(r"^([ \t]*except[ \t]+(?:\([^()\n]*\)|[^(:,\n]+)),[ \t]*(\w+)[ \t]*:", _EACH_LINE), r"\1 as \2:"),
    (re.compile(r"^([ \t]*raise[ \t]+[\w.]+),.*$", _EACH_LINE), r"\1"),
    (re.compile(r"\b0([0-7]+)\b(?=[ \t]*[,)])", re.ASCII), r"0o\1"),
)


def _as_python3(text: str) -> str:
    """The text with the commonest of Python 2's statements rewritten; the setup() call itself looks alike in both."""
    for pattern, replacement in _PYTHON2:
        text = pattern.sub(replacement, text)
    return text


def _arguments(call: dict[Any, Any]) -> SetupArguments:
    extensions = _extensions(call)
    return SetupArguments(
        name=_text(call.get("name")),
        version=_text(call.get("version")),
        python_requires=_text(call.get("python_requires")),
        packages=_packages(call.get("packages")),
        py_modules=_texts(call.get("py_modules")),
        package_dir=_text_dict(call.get("package_dir")),
        package_data=_lists(call.get("package_data")),
        ext_modules=None if extensions is None else tuple(each.name for each in extensions if each.name),
        cython_sources=tuple(s for each in extensions or () if not each.name for s in each.sources),
        cython_modules=frozenset(
            each.name for each in extensions or () if each.name and any(s.endswith(".pyx") for s in each.sources)
        ),
        namespace_packages=_texts(call.get("namespace_packages")),
        install_requires=_lines(call.get("install_requires")),
        extras_require=_lists(call.get("extras_require")),
        entry_points=_text(call.get("entry_points")) or _lists(call.get("entry_points")),
        given=frozenset(name for name in call if isinstance(name, str)),
        is_complete=UNKNOWN not in call,
    )


def _agreed(found: list[SetupArguments]) -> SetupArguments:
    """What all calls of setup() agree on: scripts have several for different cases."""
    first = found[0]
    if len(found) == 1:
        return first
    agreed = {
        name: getattr(first, name)
        for name in SetupArguments.__struct_fields__
        if all(getattr(other, name) == getattr(first, name) for other in found)
    }
    given = frozenset(name for each in found for name in each.given)
    return SetupArguments(**agreed | {"given": given, "is_complete": all(each.is_complete for each in found)})


def _extensions(call: dict[Any, Any]) -> list[Extension] | None:
    listed = [call[name] for name in ("ext_modules", "rust_extensions") if name in call]
    items: list[Any] = [item for each in listed for item in (each if isinstance(each, list | tuple) else [UNKNOWN])]
    if not listed or not all(isinstance(item, Extension) for item in items):
        return None
    return [Extension(None, item.sources) if item.name and "*" in item.name else item for item in items]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if is_texts(value) else None


def _lines(value: Any) -> tuple[str, ...] | None:
    """Requirements: a list of strings or one string, of one requirement a line each."""
    texts = _texts(value)
    return None if texts is None else tuple(line for text in texts for line in text.splitlines() if line.strip())


def _packages(value: Any) -> tuple[str | FindPackages, ...] | None:
    items = (value,) if isinstance(value, str) else value
    known = isinstance(items, list | tuple) and all(isinstance(item, str | FindPackages) for item in items)
    return tuple(items) if known else None


def _text_dict(value: Any) -> dict[str, str] | None:
    known = isinstance(value, dict) and all(isinstance(item, str) for pair in value.items() for item in pair)
    return dict(value) if known else None


def _lists(value: Any) -> dict[str, tuple[str, ...]] | None:
    if not isinstance(value, dict) or UNKNOWN in value:
        return None
    lists = {key: _lines(each) for key, each in value.items()}
    return None if None in lists.values() else {key: each for key, each in lists.items() if each is not None}
