"""The list of releases on which the reader is measured."""

import hashlib
from pathlib import Path
from subprocess import CalledProcessError

import pytest

from benchmarks.corpora import download
from benchmarks.corpora.download import Pair, canonical, listed_pairs, other_files

STRATA = {"compiled", "flat", "namespace", "old", "rust", "scientific", "setup.py", "single-file", "src"}


def test_releases_are_listed_once_with_stratum_and_files() -> None:
    pairs = listed_pairs()
    assert len({canonical(pair.release) for pair in pairs}) == len(pairs) > 100
    assert {pair.stratum for pair in pairs} == STRATA
    assert all(
        pair.chosen_as in {"chosen", "known"} or pair.chosen_as.startswith(("drawn-", "named-")) for pair in pairs
    )
    hashes = [digest for pair in pairs for digest in (pair.sdist_sha256, pair.wheel_sha256) if digest is not None]
    assert {len(digest) for digest in hashes} == {64}
    assert len(set(hashes)) == len(hashes)


def test_file_with_another_hash_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(b"content").hexdigest()
    monkeypatch.setattr(download, "listed_pairs", lambda: [Pair("demo==1.0", "flat", "chosen", digest, None)])
    for name in ("demo-1.0.tar.gz", "other-1.0.tar.gz", "demo-1.0-py3-none-any.whl"):
        (tmp_path / name).write_bytes(b"content")
    assert other_files(tmp_path) == []
    (tmp_path / "demo-1.0.tar.gz").write_bytes(b"else")
    assert other_files(tmp_path) == ["demo-1.0.tar.gz"]


def test_optional_sets_have_separate_folders() -> None:
    folders = {pair.chosen_as: pair.folder for pair in listed_pairs()}
    assert {folders[name] for name in ("chosen", "known", "drawn-1")} == {"pairs"}
    named = {name: folder for name, folder in folders.items() if name.startswith("named-")}
    assert named == {name: name for name in named} != {}


def test_old_release_is_downloaded_as_wheel_for_an_old_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def download_for_python_2(folder: Path, *options: str) -> None:
        tried.append(options)
        if "2.7" not in options:
            raise CalledProcessError(1, "pip")

    monkeypatch.setattr(download, "pip_download", download_for_python_2)
    assert download.download_wheel(tmp_path, "demo==1.0")
    assert [("3.7" in options, "2.7" in options) for options in tried] == [(False, False), (True, False), (False, True)]
    monkeypatch.setattr(download, "OLD_PYTHONS", ())
    assert not download.download_wheel(tmp_path, "demo==1.0")
