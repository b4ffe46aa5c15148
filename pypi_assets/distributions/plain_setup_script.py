"""Reads which packages a setup.py tells from its text alone, where it is as plain as most are.

Reading it as syntax (setup_script) takes a hundred times as long. What is not plain beyond doubt is left to that.
"""

import re
from typing import Any

from pypi_assets.distributions.setup_script import FindPackages, SetupArguments

_ITEM = rb"(?:\s*+[\"'][\w.*-]*+[\"']\s*+(?:,|(?=[\])])))"
_LIST = rb"[\[(]" + _ITEM + rb"*+\s*+[\])]"
_END = rb"\s*+(?=[,)])"
_FOUND = (
    rb"(?:setuptools\.)?(?P<find>find_packages|find_namespace_packages)\s*+\((?P<arguments>(?:[^()]|\([^()]*+\))*+)\)"
)
_NAME = rb"[A-Za-z_]\w*+"
_VALUE = rb"\s*+=\s*+(?:(?P<texts>" + _LIST + rb")|" + _FOUND + rb"|(?P<name>" + _NAME + rb"))" + _END
_FOLDER = rb"\s*+[\"'][\w.]*+[\"']\s*+:\s*+[\"'][\w./-]*+[\"']\s*+,?"
_FOLDERS = rb"\s*+=\s*+\{(?P<texts>(?:" + _FOLDER + rb")*+)\s*+\}" + _END
_WORDS = {
    b"packages": re.compile(rb"packages" + _VALUE),
    b"py_modules": re.compile(rb"py_modules" + _VALUE),
    b"package_dir": re.compile(rb"package_dir" + _FOLDERS),
}
_ASSIGNED = re.compile(rb"\s*+=\s*+\\?\s*+(" + _LIST + rb")[ \t]*+$", re.MULTILINE)
_ARGUMENT = re.compile(
    rb"\s*+(?:(where|exclude|include)\s*+=\s*+)?(?:([\"'][\w./-]*+[\"']|" + _LIST + rb")|(" + _NAME + rb"))\s*+(?:,|$)"
)
_TEXT = re.compile(rb"[\"']([\w./*-]*+)[\"']")
_REDEFINED = (b"def find_packages", b"def find_namespace_packages", b"def setup(")


def read_plain_setup_script(source: bytes) -> SetupArguments | None:
    """The `packages`, `py_modules` and `package_dir` of the only setup() call, None where they are not plain to see.

    Each may be given a value once at the most in the whole text: a literal, the name of a list that is assigned once,
    or find_packages() of these.
    """
    calls = source.count(b"setup(") - source.count(b"_setup(")
    if calls != 1 or b"setup (" in source or any(name in source for name in _REDEFINED):
        return None
    is_complete = b"**" not in source
    if not is_complete and any(quote + word in source for word in _WORDS for quote in (b"'", b'"')):
        return None  # what is handed over by ** may hold them
    given: dict[str, Any] = {}
    for word, pattern in _WORDS.items():
        places = _places(source, word)
        if not places:
            continue
        if (match := _argument(source, places[-1], pattern)) is None or (
            len(places) > 1 and match.groupdict().get("name") != word
        ):
            return None
        name = word.decode()
        if word == b"package_dir":
            texts = _texts(match["texts"])
            given[name] = dict(zip(texts[::2], texts[1::2], strict=True))
        elif match["texts"] is not None:
            given[name] = _texts(match["texts"])
        elif match["name"] is not None:
            given[name] = _assigned(source, match["name"])
        else:
            found = _find_call(source, match["find"], match["arguments"])
            given[name] = None if found is None else (found,)
        if given[name] is None:
            return None
    if not is_complete and "packages" not in given:
        return None
    return SetupArguments(**given, given=frozenset(given), is_complete=is_complete)


def _places(source: bytes, word: bytes) -> list[int]:
    """Where `word` is given a value."""
    places: list[int] = []
    at = source.find(word)
    while at >= 0:
        end = at + len(word)
        if source[end : end + 8].lstrip(b" \t")[:1] in {b"=", b"+"} and source[at - 1 : at] not in {b"_", b"."}:
            places.append(at)
        at = source.find(word, end)
    return places


def _argument(source: bytes, at: int, pattern: re.Pattern[bytes]) -> re.Match[bytes] | None:
    """The match of `pattern` at `at`, if that is the start of a line or of an argument."""
    before = source[source.rfind(b"\n", 0, at) + 1 : at].rstrip()
    return pattern.match(source, at) if not before or before.endswith((b"(", b",")) else None


def _assigned(source: bytes, name: bytes) -> tuple[str, ...] | None:
    """The list that is assigned to `name` at the start of a line, if the name is in the text just there and where it
    is used."""
    uses = 3 if name in _WORDS else 2  # as in packages=packages
    if source.count(name) - source.count(b"_" + name) != uses or (at := source.find(b"\n" + name)) < 0:
        return None
    match = _ASSIGNED.match(source, at + 1 + len(name))
    return None if match is None else _texts(match[1])


def _texts(literals: bytes) -> tuple[str, ...]:
    return tuple(text.decode() for text in _TEXT.findall(literals))


def _find_call(source: bytes, name: bytes, arguments: bytes) -> FindPackages | None:
    where = "."
    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    at = 0
    text = arguments.rstrip()
    while at < len(text):
        if (argument := _ARGUMENT.match(text, at)) is None:
            return None
        key = argument[1] or (b"where" if at == 0 else b"exclude")
        values = _texts(argument[2]) if argument[2] else _assigned(source, argument[3])
        if values is None or (key == b"where" and argument[2][:1] in b"[("):
            return None
        if key != b"where" and argument[2] and argument[2][:1] not in b"[(":
            return None
        if key == b"where":
            where = "/".join(part for part in values[0].split("/") if part not in {"", "."}) or "."
        elif key == b"exclude":
            exclude = values
        else:
            include = values
        at = argument.end()
    return FindPackages(where, include, exclude, namespaces=name == b"find_namespace_packages")
