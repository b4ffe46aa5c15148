"""A record names the installers that reject the file. Expectations were observed with pip and uv."""

from pathlib import Path

import pytest

from pypi_assets.distributions.reader import read_path
from pypi_assets.distributions.record import AMBIGUOUS
from pypi_assets.distributions.record_building import record_to_json
from pypi_assets_tests.builders import make_sdist, make_wheel


def actions(refusals: tuple[str, ...]) -> list[str]:
    """Return the action of each installer, without the reason."""
    return [refusal.partition(":")[0] for refusal in refusals]


def test_wheel_is_installable_if_metadata_matches_its_name(tmp_path: Path, subtests: pytest.Subtests) -> None:
    by_pip = ["pip skips"]
    ends = ["pip fails", "uv skips"]
    cases = [
        ("2.0", "Name: demo\nVersion: 2.0", []),
        ("2.0", "Name: Demo\nVersion: 2", []),
        ("2.0", "Name: demo\nVersion: 2.0.1", by_pip),
        ("2.0", "Name: demo\nVersion: 2.0+cpu", by_pip),
        ("2.0+cpu", "Name: demo\nVersion: 2.0", by_pip),
        ("2.0", "Name: other\nVersion: 2.0", ["pip skips", "uv fails"]),
        ("2.0", "Name: demo", ends),
        ("2.0", "Name: demo\nVersion: not-a-version", ends),
        ("2.0", "Version: 2.0", ends),
    ]
    for number, (version, metadata, expected) in enumerate(cases):
        with subtests.test(version=version, metadata=metadata):
            folder = tmp_path / str(number)
            folder.mkdir()
            record = read_path(make_wheel(folder, "demo", version, metadata=f"Metadata-Version: 2.1\n{metadata}\n"))
            assert actions(record.refusals) == expected
            shown = record_to_json(record)
            assert (shown["installable"], shown["refusals"]) == (not expected, list(record.refusals))


def test_wheel_with_invalid_requirement_is_skipped(tmp_path: Path, subtests: pytest.Subtests) -> None:
    cases = [
        ("a ; python_version > '3'", [], 0),
        ("a (>=1.0)", [], 0),
        ("a b", ["pip skips"], 1),
        ("a ; foo == '1'", ["pip skips"], 1),
        ("a >= 1.0.*", ["pip skips"], 1),
        ("", [], 1),
        ("a ; os_name ~= 'x'", [], 1),  # pip fails with an exception
    ]
    for number, (requirement, expected, notes) in enumerate(cases):
        with subtests.test(requirement=requirement):
            folder = tmp_path / str(number)
            folder.mkdir()
            record = read_path(make_wheel(folder, "demo", "1.0", extra_headers=[("Requires-Dist", requirement)]))
            assert actions(record.refusals) == expected
            assert sum(note.startswith(AMBIGUOUS) for note in record.notes) == notes


def test_nonstandard_wheel_name_is_skipped(tmp_path: Path) -> None:
    path = make_wheel(tmp_path, "demo", "2.0")
    for name in ("demo-2.0-py3-none-any-x8664v3.whl", "demo-2.0-x-py3-none-any.whl"):
        path = path.rename(tmp_path / name)
        record = read_path(path)
        assert actions(record.refusals) == ["pip skips", "uv skips"]
    assert read_path(path.rename(tmp_path / "demo-2.0-py3-none-any-cu128.whl")).variant == "cu128"


def test_sdist_is_skipped_if_static_metadata_contradict_its_name(tmp_path: Path) -> None:
    for number, (metadata, expected) in enumerate(
        [
            ("Metadata-Version: 2.2\nName: demo\nVersion: 1.0", []),
            ("Metadata-Version: 2.2\nName: demo\nVersion: 1.0.1", ["pip skips", "uv skips"]),
            ("Metadata-Version: 2.4\nName: other\nVersion: 1.0", ["pip skips", "uv skips"]),
            ("Metadata-Version: 2.1\nName: demo\nVersion: 1.0.1", []),  # only a build can decide
        ]
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        files = {"demo/__init__.py": "", "PKG-INFO": f"{metadata}\n"}
        assert actions(read_path(make_sdist(folder, "demo", "1.0", files=files)).refusals) == expected
