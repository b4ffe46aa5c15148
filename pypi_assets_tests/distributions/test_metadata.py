"""The small metadata files, as broken as they come."""

import pytest
from packaging.requirements import Requirement

from pypi_assets.distributions.metadata import (
    conditional,
    parse_entry_points,
    parse_metadata,
    parse_requires_txt,
    parse_top_level,
    requirement_notes,
)


def test_fields_of_core_metadata():
    metadata = parse_metadata(
        b"Metadata-Version: 2.5\nName: Demo\nVersion: 1.0\nSummary: One\n  two\nRequires-Python: >=3.11\n"
        b"Requires-Dist: a>=1\nRequires-Dist: b ; extra == 'x'\nProvides-Extra: x\nDynamic: License\n"
        b"Import-Name: demo\nImport-Name: _demo ; private\nImport-Namespace: space\n\nName: in the description\n",
        "METADATA",
    )
    assert (metadata.metadata_version, metadata.name, metadata.version) == ("2.5", "Demo", "1.0")
    assert (metadata.summary, metadata.requires_python) == ("One two", ">=3.11")
    assert metadata.requires_dist == ("a>=1", "b ; extra == 'x'")
    assert metadata.provides_extra == ("x",)
    assert metadata.dynamic == {"license"}
    assert metadata.import_names == ("demo", "_demo", "space")
    assert metadata.notes == ()


def test_wrong_encodings_nul_bytes_and_control_characters_are_replaced_and_noted():
    metadata = parse_metadata(b"Metadata-Version: 2.1\nName: d\0emo\nSummary: caf\xe9 \x1b[1m\n", "METADATA")
    assert (metadata.name, metadata.summary) == ("demo", "caf\ufffd [1m")
    assert metadata.notes == (
        "METADATA is not UTF-8: wrong bytes are replaced",
        "METADATA has NUL bytes: they are left out",
    )


def test_repeated_fields_and_broken_headers_are_noted():
    metadata = parse_metadata(b"Name: a\nName: b\nSummary: one\ntwo\nVersion: 1\n", "PKG-INFO")
    assert (metadata.name, metadata.version) == ("a", None)
    assert metadata.notes == (
        "PKG-INFO: the headers end early, at a line that is none (MissingHeaderBodySeparatorDefect)",
        "PKG-INFO: 2 Name fields; the first one counts",
    )


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x02", b"<html>\n<body>", b"\n\nName: x"])
def test_what_is_no_metadata_is_empty(content):
    assert parse_metadata(content, "METADATA").is_empty


def test_legacy_requirements_are_accepted_and_broken_ones_noted():
    assert requirement_notes(("foo (>=1)", "bar[x]>=2 ; python_version < '3'"), ">=3") == ()
    assert requirement_notes(("foo >=2.7.*x", "?"), "3.x") == (
        "not a requirement: foo >=2.7.*x",
        "not a requirement: ?",
        "not a version specifier: Requires-Python: 3.x",
    )


def test_requires_txt_becomes_pep_508():
    requirements, extras = parse_requires_txt(
        b"""six>=1.4  # why
# a comment
plain ; python_version > "2"

[:python_version < "3" or os_name == "nt"]
enum34

[tests]
pytest
colorama; sys_platform == "win32"
local @ https://files.example.org/local-1.0.zip#egg=local

[ssl:sys_platform == 'win32' or sys_platform == 'cygwin']
wincertstore==0.1

[empty]
"""
    )
    assert requirements == (
        "six>=1.4",
        'plain; python_version > "2"',
        'enum34; python_version < "3" or os_name == "nt"',
        'pytest; extra == "tests"',
        'colorama; sys_platform == "win32" and extra == "tests"',
        'local @ https://files.example.org/local-1.0.zip#egg=local ; extra == "tests"',
        "wincertstore==0.1; (sys_platform == 'win32' or sys_platform == 'cygwin') and extra == \"ssl\"",
    )
    assert extras == ("tests", "ssl", "empty")
    assert requirement_notes(requirements, None) == ()


@pytest.mark.parametrize(
    ("requirement", "marker", "extra", "environment", "applies"),
    [
        ("a; os_name == 'x' or os_name == 'y'", "python_version > '3'", "", {"os_name": "z"}, False),
        ("a; os_name == 'x' or os_name == 'y'", "python_version > '3'", "", {"os_name": "y"}, True),
        ("a", "os_name == 'x' or os_name == 'y'", "e", {"os_name": "x", "extra": ""}, False),
        ("a", "os_name == 'x' or os_name == 'y'", "e", {"os_name": "x", "extra": "e"}, True),
    ],
)
def test_conditions_are_joined_as_they_are_meant(requirement, marker, extra, environment, applies):
    joined = Requirement(conditional(requirement, marker, extra))
    assert joined.marker is not None
    assert joined.marker.evaluate(environment) is applies


def test_entry_points():
    assert parse_entry_points(
        b"[console_scripts]\ndemo = demo.cli:main [x]\nnothing\n# no = comment\n\n[empty]\n[a.b]\nX=y:Z\n"
    ) == {"console_scripts": {"demo": "demo.cli:main [x]"}, "a.b": {"X": "y:Z"}}
    assert parse_entry_points(b"demo = before:section\n") == {}


def test_top_level():
    assert parse_top_level(b"demo\n\n_demo\r\ndemo\n") == ("demo", "_demo")
