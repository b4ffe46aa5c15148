"""Records built from a filename, an extract and metadata, within the limits of a record."""

from dataclasses import replace

import pytest

from pypi_assets.distributions.extract import Extract
from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.metadata import CoreMetadata
from pypi_assets.distributions.project_facts import MAX_LICENSE_BYTES, bounded, cut_license, join_urls
from pypi_assets.distributions.record import ErrorKind
from pypi_assets.distributions.record_building import (
    MAX_NOTES,
    build_record,
    record_digest,
    record_to_json,
    same_version,
)


@pytest.mark.parametrize("text", [None, "", "MIT", "x" * MAX_LICENSE_BYTES, "é" * (MAX_LICENSE_BYTES // 2)])
def test_licence_within_the_limit_is_unchanged(text):
    assert cut_license(text) == text


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("x" * (MAX_LICENSE_BYTES + 1), "x" * MAX_LICENSE_BYTES),
        ("x" + "é" * MAX_LICENSE_BYTES, "x" + "é" * (MAX_LICENSE_BYTES // 2 - 1)),
        ("xy" + "\U0001f600" * MAX_LICENSE_BYTES, "xy" + "\U0001f600" * (MAX_LICENSE_BYTES // 4 - 1)),
        ("x" * (MAX_LICENSE_BYTES - 1) + " y", "x" * (MAX_LICENSE_BYTES - 1)),
    ],
)
def test_long_licence_is_cut_between_characters(text, cut):
    assert cut_license(text) == cut


@pytest.mark.parametrize(
    ("written", "home_page", "download_url", "expected"),
    [
        ([], None, None, []),
        (["Docs, d"], "h", "f", ["Homepage, h", "Download, f", "Docs, d"]),
        (["Docs, h"], "h", None, ["Homepage, h", "Docs, h"]),
        (["Home-Page, h", "download, f"], "h", "f", ["Home-Page, h", "download, f"]),
        (["Homepage,other"], "h", None, ["Homepage, h", "Homepage,other"]),
        (["no label"], "UNKNOWN", "UNKNOWN", ["no label"]),
    ],
)
def test_home_page_and_download_url_become_links_unless_duplicate(written, home_page, download_url, expected):
    assert join_urls(written, home_page, download_url) == expected


def test_too_long_or_too_many_values_are_omitted_and_noted():
    assert bounded(["b", "a", "b"], "X") == (("b", "a"), ())
    kept, notes = bounded(["x" * 2001, *map(str, range(1500))], "X")
    assert kept == tuple(map(str, range(1000)))
    assert notes == ("X: 501 values are left out: a record keeps 1000 of at most 2000 characters each",)


PARTS = parse_filename("demo-1.0-py3-none-any.whl")
METADATA = CoreMetadata(metadata_version="2.1", name="demo", version="1.0")


@pytest.mark.parametrize(
    ("metadata", "note"),
    [
        (replace(METADATA, name=None), "the metadata have no Name: the filename's counts"),
        (replace(METADATA, name="other"), "the metadata are of another project than the filename: other"),
        (replace(METADATA, version=None), "the metadata have no Version: the filename's counts"),
        (replace(METADATA, version="2"), "the metadata are of another version than the filename: 2"),
        (replace(METADATA, requires_python="3.x"), "not a version specifier: Requires-Python: 3.x"),
    ],
)
def test_omitted_values_are_noted(metadata, note):
    record = build_record(PARTS, None, Extract(), metadata)
    assert record.notes == (note,)
    assert (record.project, record.version) == (metadata.name or "demo", metadata.version or "1.0")


def test_notes_are_bounded_distinct_and_printable():
    notes = ["same", "same", "odd\x1b", *map(str, range(100))]
    record = build_record(PARTS, None, Extract(), METADATA, notes=notes)
    assert record.notes[:3] == ("same", "odd\ufffd", "0")
    assert record.notes[-1] == f"{len(notes) - MAX_NOTES} more notes are left out"
    assert len(record.notes) <= MAX_NOTES + 1


def test_rule_without_a_result_is_not_named():
    record = build_record(PARTS, None, Extract(), METADATA, modules_by="a rule", requires_by="a rule")
    assert (record.modules, record.modules_by, record.requires_dist, record.requires_by) == (None, None, None, None)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [("1.0", "1.0.0", True), ("1.0+local_1", "1.0+local.1", True), ("1.0_1", "1.0-1", True), ("1.0", "1.1", False)],
)
def test_equal_versions_in_different_spellings(one, other, expected):
    assert same_version(one, other) is expected


def test_digest_covers_all_values():
    record = build_record(PARTS, None, Extract(), METADATA)
    assert record_digest(record) == record_digest(replace(record))
    for change in (
        {"license": "MIT"},
        {"import_names": ()},
        {"start_up_paths": ("a.pth",)},
        {"summary": "x"},
        {"entry_points": {}},
    ):
        assert record_digest(replace(record, **change)) != record_digest(record)


def test_unknown_and_none_differ_in_json():
    unknown = record_to_json(build_record(PARTS, None, Extract(), METADATA))
    assert [unknown[name] for name in ("requires_dist", "modules", "import_names", "entry_points")] == [None] * 4
    none = build_record(
        PARTS,
        None,
        Extract(),
        replace(METADATA, import_names=()),
        requires_dist=(),
        modules=(),
        requires_by="x",
        entry_points={},
    )
    known = record_to_json(none)
    assert (known["requires_dist"], known["modules"], known["import_names"]) == ([], [], [])
    assert known["entry_points"] == {}


def test_error_makes_missing_values_unknown():
    extract = Extract()
    extract.fail(ErrorKind.CORRUPT_ARCHIVE, "it is cut")
    declared = {"console_scripts": {"demo": "demo:main"}}
    assert build_record(PARTS, None, extract, METADATA, entry_points={}).entry_points is None
    assert build_record(PARTS, None, extract, METADATA, entry_points=declared).entry_points == declared
