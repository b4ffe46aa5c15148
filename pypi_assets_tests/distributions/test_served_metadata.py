"""Rendered metadata equal what an installer reads in the file, or are not rendered."""

import hashlib
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
from packaging.metadata import Metadata

from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.served_metadata import (
    METADATA_COLUMNS,
    file_version,
    metadata_of_row,
    metadata_sha256,
    render_metadata,
)
from pypi_assets_tests.builders import core_metadata, make_sdist, make_wheel

REQUIRES = ["other>=2; python_version < '4'", "some[extra]~=1.0", "x @ https://example.org/é.zip"]
ROW: dict[str, Any] = {
    "project": "Demo.Pkg",
    "version": "1.0",
    "filename": "demo_pkg-1.0-py3-none-any.whl",
    "kind": "wheel",
    "outcome": "data",
    "requires_python": ">=3.9",
    "requires_dist": ["other>=2"],
    "provides_extra": ["extra"],
    "requires_by": "METADATA",
    "notes": [],
}


def row_of(path: Path, release: str = "1.0") -> dict[str, Any]:
    """Return the row of a dump for the file at `path`, with the columns that metadata need."""
    record = read_path(path)
    return {
        "project": record.project,
        "version": release,
        "filename": path.name,
        "kind": record.kind.value,
        "outcome": "error" if record.error else "data",
        "requires_python": record.requires_python,
        "requires_dist": None if record.requires_dist is None else list(record.requires_dist),
        "provides_extra": list(record.provides_extra),
        "requires_by": record.requires_by,
        "notes": list(record.notes),
    }


def fields(content: bytes) -> dict[str, list[str] | None]:
    message = message_from_bytes(content)
    return {
        name: message.get_all(name)
        for name in ("Name", "Version", "Requires-Python", "Requires-Dist", "Provides-Extra")
    }


def test_wheel_metadata_have_the_original_fields(tmp_path: Path) -> None:
    own = core_metadata(
        "Demo.Pkg", "1.0", requires_dist=REQUIRES, requires_python=">=3.9", provides_extra=["a", "b"], summary="x"
    )
    row = row_of(make_wheel(tmp_path, "Demo.Pkg", "1.0", metadata=own))
    content = metadata_of_row(row)
    assert content is not None
    assert fields(content) == fields(own.encode())
    assert Metadata.from_email(content, validate=False).metadata_version == "2.2"
    assert metadata_sha256(row) == hashlib.sha256(content).hexdigest()
    assert set(row) == set(METADATA_COLUMNS)


def test_static_sdist_metadata_are_rendered(tmp_path: Path) -> None:
    static = row_of(make_sdist(tmp_path, "demo", "1.0", metadata_version="2.2", requires_dist=["other>=2"]))
    content = metadata_of_row(static)
    assert content is not None
    assert fields(content)["Requires-Dist"] == ["other>=2"]
    headers = [("Dynamic", "Requires-Dist")]
    for path in (
        make_sdist(tmp_path, "old", "1.0", metadata_version="2.1", requires_dist=["other>=2"]),
        make_sdist(tmp_path, "dynamic", "1.0", metadata_version="2.4", extra_headers=headers),
    ):
        assert metadata_of_row(row_of(path)) is None


def test_doubtful_metadata_are_not_rendered(subtests: pytest.Subtests) -> None:
    cases = [
        {"outcome": "error"},
        {"outcome": "pending"},
        {"requires_dist": None},
        {"requires_by": None},
        {"requires_by": "requires.txt"},
        {"requires_by": "static PKG-INFO"},
        {"kind": "egg", "filename": "demo-1.0-py3.12.egg"},
        {"notes": ["ambiguous archive: two members METADATA"]},
        {"notes": ["fine", "the metadata are of another version than the filename: 2.0"]},
        {"notes": ["METADATA is not UTF-8: wrong bytes are replaced"]},
        {"notes": ["METADATA: the headers end early, at a line that is none (X)"]},
        {"notes": ["7 more notes are left out"]},
        {"requires_dist": ["a\nName: evil"]},
        {"project": "a\rb"},
        {"provides_extra": ["\u2028"]},
    ]
    for columns in cases:
        with subtests.test(columns=columns):
            assert metadata_of_row({**ROW, **columns}) is None
            assert metadata_sha256({**ROW, **columns}) is None


@pytest.mark.parametrize(
    "notes",
    [
        None,
        [],
        ["METADATA: 2 License fields; the first one counts"],
        ["METADATA: Classifier: 3 more are left out"],
        ["not a requirement: x y z"],
        ["the .dist-info folder does not fit the filename: x.dist-info"],
    ],
)
def test_harmless_notes_do_not_prevent_rendering(notes: list[str] | None) -> None:
    assert metadata_of_row({**ROW, "notes": notes}) is not None


@pytest.mark.parametrize(
    ("filename", "release", "version"),
    [
        ("demo-1.0.0-py3-none-any.whl", "1.0", "1.0.0"),
        ("demo-1!2.0-1-py3-none-any.whl", "1!2.0", "1!2.0"),
        ("demo-1.0+local_x-py3-none-any.whl", "1.0+local.x", "1.0+local_x"),
        ("demo-1.0_1-py3-none-any.whl", "1.0.post1", "1.0-1"),
        ("demo-1.0.tar.gz", "1.0", "1.0"),
        ("demo-pkg-2.0-py2.py3-none-any.whl", "2.0", "2.0"),
        ("other.whl", "3.0", "3.0"),
        ("demo-1!2.0-py3-none-any.whl", "1!2.0", "1!2.0"),
    ],
)
def test_version_comes_from_the_filename(filename: str, release: str, version: str) -> None:
    assert file_version(filename, release, filename.partition("-1")[0].partition("-2")[0]) == version


def test_rendering_is_deterministic() -> None:
    assert render_metadata("Demo", "1.0", ">=3.9", ["b", "a"], ["x"]) == (
        b"Metadata-Version: 2.2\nName: Demo\nVersion: 1.0\nRequires-Python: >=3.9\n"
        b"Requires-Dist: b\nRequires-Dist: a\nProvides-Extra: x\n"
    )
    assert render_metadata("Demo", "1.0", None, [], []) == b"Metadata-Version: 2.2\nName: Demo\nVersion: 1.0\n"
