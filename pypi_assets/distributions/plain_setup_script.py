"""Reads which packages a setup.py tells from its text alone, where it is as plain as most are.

Reading it as syntax (setup_script) takes a hundred times as long. What is not plain beyond doubt is left to that.
"""

import re
from typing import Any

from pypi_assets.distributions.setup_script import FindPackages, SetupArguments

_ITEM = rb"(?:\s*+[\"'][\w.*-]*+[\"']\s*+(?:,|(?=[\])])))"
_LIST = rb"[\[(]" + _ITEM + rb"*+\s*+[\])]"
_END = rb"\s*+(?=[,)])"
_FOUND = rb"(?:setuptools\.)?(find_packages|find_namespace_packages)\s*+\(((?:[^()]|\([^()]*+\))*+)\)"
_PACKAGES = re.compile(rb"packages\s*+=\s*+(?:(" + _LIST + rb")|" + _FOUND + rb")" + _END)
_PY_MODULES = re.compile(rb"py_modules\s*+=\s*+(" + _LIST + rb")" + _END)
_FOLDER = rb"\s*+[\"'][\w.]*+[\"']\s*+:\s*+[\"'][\w./-]*+[\"']\s*+,?"
_PACKAGE_DIR = re.compile(rb"package_dir\s*+=\s*+\{((?:" + _FOLDER + rb")*+)\s*+\}" + _END)
_ARGUMENT = re.compile(
    rb"\s*+(?:(where|exclude|include)\s*+=\s*+)?(?:([\"'][\w./-]*+[\"'])|(" + _LIST + rb"))\s*+(?:,|$)"
)
_TEXT = re.compile(rb"[\"']([\w./*-]*+)[\"']")


def read_plain_setup_script(source: bytes) -> SetupArguments | None:
    """The `packages`, `py_modules` and `package_dir` of the only setup() call, None where they are not plain to see.

    Each may be given a value once at the most in the whole text: a literal, or find_packages() of literals.
    """
    calls = source.count(b"setup(") - source.count(b"_setup(")
    if calls != 1 or b"setup (" in source or b"**" in source or b"def find_" in source:
        return None
    given: dict[str, Any] = {}
    for name, pattern in (("packages", _PACKAGES), ("py_modules", _PY_MODULES), ("package_dir", _PACKAGE_DIR)):
        places = _places(source, name.encode())
        if not places:
            continue
        if len(places) > 1 or (match := _argument(source, places[0], pattern)) is None:
            return None
        if match[1] is None:
            if (found := _find_call(match[2], match[3])) is None:
                return None
            given[name] = (found,)
        elif name == "package_dir":
            texts = _texts(match[1])
            given[name] = dict(zip(texts[::2], texts[1::2], strict=True))
        else:
            given[name] = _texts(match[1])
    return SetupArguments(**given, given=frozenset(given), is_complete=True)


def _places(source: bytes, word: bytes) -> list[int]:
    """Where `word` is given a value, two places at the most."""
    places: list[int] = []
    at = source.find(word)
    while at >= 0 and len(places) < 2:
        end = at + len(word)
        if source[end : end + 8].lstrip(b" \t")[:1] in {b"=", b"+"} and source[at - 1 : at] not in {b"_", b"."}:
            places.append(at)
        at = source.find(word, end)
    return places


def _argument(source: bytes, at: int, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    """The match of `pattern` at `at`, if that is the start of a line or of an argument."""
    before = source[source.rfind(b"\n", 0, at) + 1 : at].rstrip()
    return pattern.match(source, at) if not before or before.endswith((b"(", b",")) else None


def _texts(literals: bytes) -> tuple[str, ...]:
    return tuple(text.decode() for text in _TEXT.findall(literals))


def _find_call(name: bytes, arguments: bytes) -> FindPackages | None:
    where = "."
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    at = 0
    text = arguments.rstrip()
    while at < len(text):
        if (argument := _ARGUMENT.match(text, at)) is None:
            return None
        key = argument[1] or (b"where" if at == 0 else b"exclude")
        if (key == b"where") != (argument[3] is None):
            return None
        values = _texts(argument[0][len(argument[1] or b"") :])
        if key == b"where":
            where = "/".join(part for part in values[0].split("/") if part not in {"", "."}) or "."
        elif key == b"exclude":
            exclude = values
        else:
            include = values
        at = argument.end()
    return FindPackages(where, include, exclude, namespaces=name == b"find_namespace_packages")
