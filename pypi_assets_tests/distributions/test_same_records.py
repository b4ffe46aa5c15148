"""The record of a file depends on its bytes, not on the Python that reads it.

Records of odd and hostile files are compared with digests that one Python wrote and every Python must reproduce. The
reader's code uses nothing that changes between versions of Python, except in the modules that replace it.
"""

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pypi_assets
from pypi_assets_tests.distributions.same_records import DIGESTS, content_of, digest_of, known_files

PACKAGE = Path(pypi_assets.__file__).parent
READING = [
    *sorted((PACKAGE / "distributions").rglob("*.py")),
    *sorted((PACKAGE / "leveldbs" / "datasets").rglob("*.py")),
]
NAMES = [*READING, PACKAGE / "index" / "pages.py"]
"""Modules that determine the files and names."""

UNICODE_METHODS = {
    *("isidentifier", "isprintable", "isalpha", "isalnum", "isdigit", "isdecimal", "isnumeric", "islower", "isupper"),
    *("istitle", "casefold", "title", "swapcase", "capitalize"),
}
"""Methods that use the interpreter's Unicode tables. The datasets also use lower and upper, for ASCII texts."""
MODULES = {
    *("html", "tarfile", "zipfile", "email", "configparser", "unicodedata", "keyword", "tokenize", "token", "fnmatch"),
    *("glob", "shlex", "textwrap", "csv", "urllib", "posixpath", "locale", "tomllib", "gzip", "optparse", "inspect"),
}
ALLOWED = {
    "distributions/setup_script.py": {"ast.parse"},  # in the output of script_text.py
    "distributions/setup_functions.py": {"title", "lower", "upper"},  # for texts that are ASCII
    "distributions/requirements.py": {"packaging"},  # for texts that are ASCII
    "distributions/requirement_names.py": {"packaging"},  # for names that are ASCII
    "leveldbs/datasets/hashes/hash_records.py": {"lower"},  # for a hash
    "leveldbs/datasets/provided_names.py": {"upper"},  # for the name of a kind
    "leveldbs/datasets/depgraph/depgraph_records.py": {"packaging", "upper"},  # for hex digits
}
PATTERN_FUNCTIONS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
UNICODE_CLASS = re.compile(r"\\\\[wWdDbB]")


def used(path: Path) -> Iterator[str]:
    """Return the version-dependent functions that a module uses."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                yield from (name.name.partition(".")[0] for name in names if name.name.partition(".")[0] in changing())
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] in changing():
                yield module.partition(".")[0]
            case ast.Attribute(value=ast.Name(id="ast"), attr=("parse" | "literal_eval") as name):
                yield f"ast.{name}"
            case ast.Attribute(attr=name) if name in UNICODE_METHODS | {"lower", "upper"}:
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)) if name in PATTERN_FUNCTIONS:
                yield from ["a pattern of Unicode classes"] * is_unicode_pattern(node)


def changing() -> set[str]:
    return {*MODULES, "packaging"}


def is_unicode_pattern(call: ast.Call) -> bool:
    """Check whether the pattern is a text, not bytes, and lacks the re.ASCII that it needs."""
    pattern = call.args[0]
    texts = [each.value for each in ast.walk(pattern) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    flags = {each.attr for argument in call.args[1:] for each in ast.walk(argument) if isinstance(each, ast.Attribute)}
    names = {each.id for argument in call.args[1:] for each in ast.walk(argument) if isinstance(each, ast.Name)}
    is_ascii = "ASCII" in flags or names & {"_ANY_CASE", "_EACH_LINE"}
    return not is_ascii and ("IGNORECASE" in flags or any(map(UNICODE_CLASS.search, texts)))


def test_reader_uses_no_version_dependent_functions(subtests: pytest.Subtests):
    for path in NAMES:
        with subtests.test(path=path):
            uses = set(used(path))
            if path not in READING:
                uses &= UNICODE_METHODS
            assert uses <= ALLOWED.get(str(path.relative_to(PACKAGE)), set())


def test_uses_are_detected(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        "import html\nfrom email.parser import HeaderParser\nx = 'a'.isidentifier()\ny = map(str.casefold, x)\n"
        "ast.parse(x)\nre.compile(r'\\\\w')\nre.sub('a', 'b', 'c', flags=0)\nre.compile(rb'\\\\w')\n"
        "re.compile(f'{x}\\\\d', re.ASCII)\nre.split('k', x, re.IGNORECASE)\n"
    )
    assert sorted(used(module)) == sorted(
        ["html", "email", "isidentifier", "casefold", "ast.parse", *["a pattern of Unicode classes"] * 2]
    )


@pytest.mark.nightly
def test_known_files_have_the_same_records_on_each_python():
    expected = json.loads(DIGESTS.read_text())
    known = {name: (filename, content) for name, filename, content in known_files(expected)}
    assert sorted(known) == sorted(expected)
    different = [name for name, file in known.items() if digest_of(*file) != expected[name]]
    assert different == [], (
        f"{content_of(*known[different[0]])}: if the contents of records were changed, write the digests again with"
        " `python -m pypi_assets_tests.distributions.same_records digests`"
    )
