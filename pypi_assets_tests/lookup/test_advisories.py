"""Advisories in OSV format: affected versions, named problems and skipped records."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

from pypi_assets.lookup import advisories
from pypi_assets.lookup.advisories import Advisories, AdvisoriesError, read_advisories
from pypi_assets_tests.named import unnamed


def record(
    name: str = "demo",
    *,
    versions: list[str] | None = None,
    events: list[dict[str, str]] | None = None,
    kind: str = "ECOSYSTEM",
    ecosystem: str = "PyPI",
    **further: Any,
) -> dict[str, Any]:
    affected: dict[str, Any] = {"package": {"ecosystem": ecosystem, "name": name, "purl": "pkg:pypi/x"}}
    if versions is not None:
        affected["versions"] = versions
    if events is not None:
        affected["ranges"] = [{"type": kind, "events": events, "repo": "x"}]
    return {
        "schema_version": "1.7.0",
        "id": "X-1",
        "modified": "2026-01-01T00:00:00Z",
        "affected": [affected],
        **further,
    }


def stored(folder: Path, **records: dict[str, Any] | bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for name, content in records.items():
        data = content if isinstance(content, bytes) else json.dumps({**content, "id": name}).encode()
        (folder / f"{name}.json").write_bytes(data)
    return folder


def zipped(path: Path, **records: dict[str, Any] | bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in records.items():
            data = content if isinstance(content, bytes) else json.dumps({**content, "id": name}).encode()
            archive.writestr(f"{name}.json", data)
    return path


def affected(found: Advisories, *versions: str, project: str = "demo") -> list[str]:
    return [version for version in versions if found.affected(project, version)]


@pytest.mark.parametrize("store", [stored, zipped])
def test_ecosystem_versions_and_ranges_match(store, tmp_path: Path):
    result = read_advisories(
        store(
            tmp_path / "all",
            A=record("Demo", versions=["1.0", "1.5-legacy"]),
            B=record(
                "demo", events=[{"introduced": "2"}, {"fixed": "2.2"}, {"introduced": "3"}, {"last_affected": "3.1"}]
            ),
            C=record("demo", events=[{"introduced": "0"}], kind="GIT"),
            D=record("demo", events=[{"introduced": "0"}], ecosystem="npm"),
            E=record("demo", versions=["9"], withdrawn="2026-01-02T00:00:00Z"),
            F=record("other", versions=["1"], events=[{"introduced": "5"}, {"limit": "6"}]),
        )
    )
    assert (result.records, result.withdrawn, result.others, result.problems) == (4, 1, 1, ())
    assert result.projects == ["demo", "other"]
    every = ("0.1", "1", "1.0.0", "1.1", "1.5-legacy", "2rc1", "2", "2.1.9", "2.2", "3", "3.1", "3.1.post1", "9")
    assert affected(result, *every) == ["1", "1.0.0", "1.5-legacy", "2", "2.1.9", "3", "3.1"]
    assert affected(result, "1", "5", "5.9", "6", project="Other") == ["1", "5", "5.9"]
    assert (result.affected("DEMO", "1.0"), result.affected("demo", "2"), result.affected("none", "1")) == (
        ["A"],
        ["B"],
        [],
    )


def test_pre_releases_of_0_are_before_all_versions(tmp_path: Path):
    result = read_advisories(stored(tmp_path, A=record(events=[{"introduced": "0"}, {"fixed": "1.0"}])))
    assert affected(result, "0.dev1", "0a1", "0.9", "1.0rc1", "1.0", "no version", "9" * 5_000) == [
        *("0.dev1", "0a1", "0.9", "1.0rc1")
    ]


VERSIONS = ("0.dev0", "0", "1rc1", "1", "1.0.post1", "2", "3")
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["introduced", "fixed", "last_affected", "limit"]), st.sampled_from(("0", *VERSIONS[2:]))
    ),
    max_size=5,
)


def by_the_schema(version: str, events: list[tuple[str, str]]) -> bool:
    """Evaluate ranges by the algorithm of the OSV schema's documentation."""
    parsed = Version(version)
    limits = [Version(at) for kind, at in events if kind == "limit"]
    if limits and not any(parsed < limit for limit in limits):
        return False
    vulnerable = False
    for kind, at in sorted(events, key=lambda one: (one != ("introduced", "0"), Version(one[1]))):
        if kind == "introduced" and (at == "0" or parsed >= Version(at)):
            vulnerable = True
        elif (kind == "fixed" and parsed >= Version(at)) or (kind == "last_affected" and parsed > Version(at)):
            vulnerable = False
    return vulnerable


@given(events=EVENTS)
def test_ranges_are_evaluated_as_the_schema_describes(events: list[tuple[str, str]]):
    ends = advisories._ends_of(advisories._Event(**{kind: at}) for kind, at in events)
    assert [ends.has(Version(version)) for version in VERSIONS] == [
        by_the_schema(version, events) for version in VERSIONS
    ]


@pytest.mark.parametrize("store", [stored, zipped])
def test_invalid_record_is_named_and_the_others_count(store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(advisories, "RECORD_BYTES", 10_000)
    good = record(versions=["1.0"])
    result = read_advisories(
        store(
            tmp_path / "all",
            bad_json=b"{",
            bad_text=b'{"id": "\xff"}',
            deep=b'{"id": "x", "more": ' + b"[" * 4_000 + b"]" * 4_000 + b"}",
            good=good,
            large=b" " * 10_001,
            no_id=b'{"affected": []}',
            odd_range=record(versions=["3.0"], events=[{"introduced": "latest"}]),
            typed=b'{"id": "x", "affected": [{"package": {"ecosystem": "PyPI", "name": 3}}]}',
            zero=b"",
        )
    )
    names = [name.removesuffix(".json") for name, _ in result.problems]
    # the permitted nesting of unknown fields depends on the version of Python
    assert [name for name in names if name != "deep"] == [
        *("bad_json", "bad_text", "large", "no_id", "odd_range", "typed", "zero")
    ]
    reasons = dict(result.problems)
    assert unnamed(reasons["large.json"], 10000) == []
    assert unnamed(reasons["odd_range.json"], "odd_range", "'latest'") == []
    assert affected(result, "1.0", "2.0", "3.0") == ["1.0", "3.0"]


def test_zip_member_that_is_not_a_plain_file_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(advisories, "RECORD_BYTES", 10_000)
    path = tmp_path / "all.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb.json", b"0" * 50_000_000)
        archive.writestr("lzma.json", b"{}", zipfile.ZIP_LZMA)
        archive.writestr("readme.txt", "no record")
        archive.mkdir("folder.json")
        archive.writestr("spoilt.json", json.dumps(record(versions=["1"])))
        archive.writestr("good.json", json.dumps(record(versions=["2"])))
    data = bytearray(path.read_bytes())
    at = data.index(b"spoilt.json") + len("spoilt.json")
    data[at + 2 : at + 12] = b"\xff" * 10
    path.write_bytes(data)
    result = read_advisories(path)
    assert [name for name, _ in result.problems] == ["bomb.json", "lzma.json", "spoilt.json"]
    assert affected(result, "1", "2") == ["2"]


def test_links_and_devices_in_a_folder_are_not_read(tmp_path: Path):
    folder = stored(tmp_path / "all", good=record(versions=["1"]))
    below = stored(folder / "below", also=record(versions=["2"]))
    (tmp_path / "elsewhere.json").write_text(json.dumps(record(versions=["3"])))
    (below / "link.json").symlink_to(tmp_path / "elsewhere.json")
    (folder / "circle").symlink_to(folder)
    os.mkfifo(folder / "pipe.json")
    result = read_advisories(folder)
    assert [name for name, _ in result.problems] == ["pipe.json", "below/link.json"]
    assert affected(result, "1", "2", "3") == ["1", "2"]


@pytest.mark.parametrize(
    ("limit", "value"),
    [("MOST_RECORDS", 2), ("TOTAL_BYTES", 300), ("MOST_VERSIONS", 3)],
)
@pytest.mark.parametrize("store", [stored, zipped])
def test_too_much_content_is_rejected(store, limit: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(advisories, limit, value)
    path = store(tmp_path / "all", **{name: record(versions=["1", "2"]) for name in "abc"})
    with pytest.raises(AdvisoriesError, match=rf"\b{value}\b"):
        read_advisories(path)


def test_folders_and_zip_directories_beyond_the_limits_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = zipped(tmp_path / "all.zip", **{f"record{number}": record() for number in range(10)})
    monkeypatch.setattr(advisories, "DIRECTORY_BYTES", 500)
    with pytest.raises(AdvisoriesError, match=r"\b500\b"):
        read_advisories(path)
    monkeypatch.setattr(advisories, "MOST_FOLDERS", 2)
    for name in "abc":
        (tmp_path / "folder" / name).mkdir(parents=True)
    with pytest.raises(AdvisoriesError, match=r"\b2\b"):
        read_advisories(tmp_path / "folder")


@pytest.mark.parametrize("content", [b"", b"no zip", b"PK\x03\x04" + b"\0" * 100, b"PK\x05\x06" + b"\xff" * 18])
def test_file_that_is_not_a_zip_is_rejected(content: bytes, tmp_path: Path):
    path = tmp_path / "all.zip"
    path.write_bytes(content)
    with pytest.raises(AdvisoriesError, match=r"all\.zip"):
        read_advisories(path)
    with pytest.raises(AdvisoriesError, match=r"none\.zip"):
        read_advisories(tmp_path / "none.zip")
    with pytest.raises(AdvisoriesError, match=r"empty.*\.json"):
        read_advisories(stored(tmp_path / "empty"))
