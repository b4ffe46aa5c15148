"""Small metadata files, including broken ones."""

from email.parser import HeaderParser

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from pypi_assets.distributions.metadata import (
    conditional,
    decode_text,
    headers_of,
    one_line,
    parse_entry_points,
    parse_metadata,
    parse_requires_txt,
    parse_top_level,
    plain_requirement,
    requirement_notes,
)
from pypi_assets_tests.examples import examples


def test_core_metadata_fields():
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
    assert metadata.import_names == ("demo", "_demo ; private", "space")
    assert metadata.declared_names == ("demo", "_demo", "space")
    assert metadata.notes == ()


def facts(content):
    metadata = parse_metadata(b"Metadata-Version: 2.4\nName: demo\nVersion: 1\n" + content, "METADATA")
    assert metadata.name == "demo"
    return metadata


def test_licence_and_links():
    parsed = facts(
        b"License-Expression: MIT OR Apache-2.0\nLicense: Some\n        Licence\nHome-page: https://example.org\n"
        b"Classifier: Programming Language :: Python\nClassifier: License :: OSI Approved\nClassifier: License\n"
        b"Classifier:\n License :: Public Domain\nProject-URL: Docs,https://example.org/docs\n"
    )
    assert (parsed.license_expression, parsed.license) == ("MIT OR Apache-2.0", "Some Licence")
    assert parsed.license_classifiers == ("License :: OSI Approved", "License :: Public Domain")
    assert parsed.project_urls == ("Homepage, https://example.org", "Docs,https://example.org/docs")
    assert parsed.notes == ()
    assert facts(b"") == facts(b"Classifier: Framework :: License\n")


@pytest.mark.parametrize(
    ("content", "names", "declared"),
    [
        (b"", None, ()),
        (b"Import-Name:\n", (), ()),
        (
            b"Import-Name: a.b\nImport-Name: _c;private\nImport-Namespace: a\n",
            ("a.b", "_c;private", "a"),
            ("a.b", "_c", "a"),
        ),
        (b"Import-Namespace: a\n", ("a",), ("a",)),
    ],
)
def test_empty_import_name_means_none_and_missing_means_unknown(content, names, declared):
    assert (facts(content).import_names, facts(content).declared_names) == (names, declared)


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", b"\r"])
def test_fast_and_thorough_parsing_agree(line_end):
    content = (
        b"LICENSE: a\x1b[1mb\nclassifier: License :: A\nclassifier: License\x1b:: B\nHOME-PAGE: x\nDownload-URL: y\n"
        b"Import-Name: \x00\nProject-Url: a, b\nLicense-File: no\n"
    )
    parsed = facts(content.replace(b"\n", line_end))
    assert (parsed.license, parsed.license_classifiers) == ("a [1mb", ("License :: A", "License :: B"))
    assert parsed.project_urls == ("Homepage, x", "Download, y", "a, b")
    assert parsed.import_names == ()


def test_hostile_facts_stay_bounded():
    urls = b"".join(b"Project-URL: l%d, https://example.org/%d\n" % (n, n) for n in range(5000))
    long = b"Project-URL: long, " + b"x" * 3000 + b"\nLicense-Expression: " + b"(" * 3000 + b"\n"
    text = "License: \u20ac\u0007".encode() * 400 + b"\n"
    parsed = facts(long + urls + text + b"Classifier: License :: A\n" * 5000 + b"Import-Name: " + b"a" * 9999 + b"\n")
    assert len(parsed.project_urls) == 1000
    assert parsed.project_urls[0] == "l0, https://example.org/0"
    assert parsed.license_expression is None
    assert parsed.license is not None
    assert parsed.license.isprintable()
    assert 1000 < len(parsed.license.encode()) <= 1024
    assert parsed.license_classifiers == ("License :: A",)
    assert parsed.import_names == ()
    assert [note.partition(":")[2][:45] for note in parsed.notes] == [
        " License-Expression: 1 values are left out: a",
        " Project-URL: 4001 values are left out: a rec",
        " Import-Name: 1 values are left out: a record",
    ]


def test_invalid_characters_are_replaced_and_noted():
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
def test_invalid_metadata_are_empty(content):
    assert parse_metadata(content, "METADATA").is_empty


def test_legacy_requirements_are_accepted_and_invalid_ones_noted():
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
def test_conditions_are_joined_with_correct_precedence(requirement, marker, extra, environment, applies):
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


# Bytes of headers, and bytes that break them.
PIECES = st.sampled_from(
    b"Name|name|Requires-Dist|Summary|X-Y|: |:| |\t|\n|\n|\n\n|\r\n|\r|demo|a>=1|From |\0|\x0c|\x1c|\x85|\xe9|\xc3\xa9"
    b"|\xe2\x80\xa8|\xef\xbb\xbf".split(b"|")
)
HEADERS = st.lists(PIECES, max_size=30).map(b"".join)


def parse_with_standard_library(content):
    """Parse the fields with the standard library, as an installer would."""
    text, _ = decode_text(content, "METADATA")
    message = HeaderParser().parsestr(text)
    values = {
        key: [one_line(value) for value in message.get_all(key, ())] for key in ("Name", "Requires-Dist", "Summary")
    }
    return {key: [value for value in each if value] for key, each in values.items()}, bool(message.defects)


@settings(max_examples=examples(300))
@given(HEADERS)
@example(b"Name: a\r\nSummary: b\r\n c\r\n\r\nName: no")
@example(b"Name: a\n \nSummary: b")
@example(b"\nName: a")
@example(b"Name: a\r\0\nSummary: b")
@example(b"\xef\xbb\xbfName: a\n\n")
def test_headers_match_the_standard_library(content):
    expected, has_defects = parse_with_standard_library(content)
    metadata = parse_metadata(content, "METADATA")
    assert metadata.name == next(iter(expected["Name"]), None)
    assert metadata.summary == next(iter(expected["Summary"]), None)
    assert list(metadata.requires_dist) == expected["Requires-Dist"]
    assert any("the headers end early" in note for note in metadata.notes) == has_defects


@settings(max_examples=examples(300))
@given(HEADERS)
def test_headers_give_the_same_fields_as_the_whole_file(content):
    headers = headers_of(content)
    assert content.startswith(headers)
    assert parse_metadata(headers, "METADATA") == parse_metadata(content, "METADATA")
    assert headers_of(headers) == headers


def test_description_is_not_read_as_headers():
    assert headers_of(b"Name: a\n\nText\n\nmore") == b"Name: a\n\n"
    assert headers_of(b"Name: a\r\n\r\nText") == b"Name: a\r\n\r\n"
    assert headers_of(b"Name: a\nno header\n\nText") == b"Name: a\nno header\n\n"


@pytest.mark.nightly
def test_megabytes_of_headers_cost_little():
    many = parse_metadata(b"Name: demo\n" + b"X:\n" * 750_000 + b"Version: 1\n", "METADATA")
    assert (many.name, many.version, many.notes) == ("demo", "1", ())
    odd = parse_metadata(b"Name: demo\r" + b"X:\n" * 750_000 + b"Version: 1\n", "METADATA")
    assert (odd.name, odd.version) == ("demo", None)
    assert odd.notes == ("METADATA: what the headers have after 2097152 characters is left out",)
    assert "too long to be checked" in requirement_notes(("a" * 5000,), None)[0]
    assert "too long to be checked" in requirement_notes((), ">=3," * 2000)[0]


NEAR_REQUIREMENTS = st.from_regex(plain_requirement()[0], fullmatch=True, alphabet=st.characters(codec="ascii"))


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(NEAR_REQUIREMENTS)
def test_plain_requirements_are_valid_for_packaging(requirement):
    Requirement(requirement)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow])
@given(st.from_regex(plain_requirement()[1], fullmatch=True, alphabet=st.characters(codec="ascii")))
def test_plain_specifiers_are_valid_for_packaging(specifiers):
    SpecifierSet(specifiers)


@pytest.mark.parametrize(
    "requirement",
    [
        "requests",
        "requests>=2.0,<3",
        "requests (>=2.0)",
        "Foo.Bar[a,b-c] >= 1.0 ; python_version < '3.8' and extra == 'x'",
        "foo==1.*; (os_name == 'nt' or sys_platform != \"linux\") and extra == 'y'",
        "foo~=1.2rc1",
    ],
)
def test_common_requirements_are_plain(requirement):
    """Check that common requirements take the fast path."""
    assert plain_requirement()[0].fullmatch(requirement)
    assert requirement_notes((requirement,), None) == ()
