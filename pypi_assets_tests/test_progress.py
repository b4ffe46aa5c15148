"""Small modules: errors, extras, progress, caches of short texts, times."""

import importlib
import json
import re
import shlex
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from pypi_assets import extras, settings
from pypi_assets.errors import ExpectedError, SettingsError
from pypi_assets.extras import install_command
from pypi_assets.progress import Progress
from pypi_assets.short_texts import cached_if_short
from pypi_assets.times import utc_text


@pytest.mark.parametrize(
    ("failed", "wait_s", "named"),
    [(0, 0.0, []), (3, 0.0, ["3"]), (0, 59.6, ["60"]), (1, 0.4, ["1", "0"])],
)
def test_remarks_count_failures_and_waiting_time(failed: int, wait_s: float, named: list[str]) -> None:
    assert re.findall(r"\d+", Progress("files read", 1, 2, failed, wait_s).remarks) == named


def test_remarks_are_empty_without_failures() -> None:
    assert Progress("files read", 0, 0).remarks == ""


def test_remarks_of_a_wait_end_with_its_last_error() -> None:
    assert Progress("visits", 1, 2, wait_s=3.0, reason="HTTP 503 (URL)").remarks.endswith("HTTP 503 (URL)")


EXPECTED = [
    "catalog.database.CatalogError",
    "catalog.ledger.serial_range.RangeError",
    "distributions.extract.ExtractError",
    "distributions.reader_pool.ReaderStartError",
    "dumps.dump_format.DumpDamagedError",
    "extracts.packs.PackError",
    "index.errors.PackageIndexError",
    "leveldbs.format.leveldb_errors.LeveldbError",
    "iceberg.table_catalog.TablesError",
    "parquet.export_manifest.ParquetError",
    "storage.store.StorageError",
]


def test_errors_of_each_part_are_expected(subtests: pytest.Subtests) -> None:
    for path in EXPECTED:
        with subtests.test(path=path):
            module, _, name = path.rpartition(".")
            assert issubclass(getattr(importlib.import_module(f"pypi_assets.{module}"), name), ExpectedError)


def test_settings_error_is_expected() -> None:
    assert issubclass(SettingsError, ExpectedError)
    assert SettingsError is settings.SettingsError


def test_install_command_uses_the_tool_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "distribution", lambda _: PathDistribution(tmp_path))  # an index provided it
    for prefix, begins in (
        ("/home/me/.local/share/uv/tools/pypi-assets", "uv tool install "),
        ("/home/me/.local/share/pipx/venvs/pypi-assets", "pipx install --force "),
        ("/home/me/uv/project/tools/.venv", "python -m pip install "),
    ):
        assert install_command("parquet", prefix) == f"{begins}'pypi-assets[parquet]'"


def test_install_command_names_the_place_that_was_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = "file:///home/me/dist/pypi_assets-0.1.0-py3-none-any.whl"
    repository = {"url": "https://git.example.org/a b/it's", "vcs_info": {"vcs": "git", "commit_id": "0f1bf202"}}
    for direct_url, origin in (
        ({"url": wheel, "archive_info": {}}, wheel),
        ({"url": "file:///home/me/main", "dir_info": {"editable": True}}, "file:///home/me/main"),
        (repository, "git+https://git.example.org/a b/it's@0f1bf202"),
    ):
        (tmp_path / "direct_url.json").write_text(json.dumps(direct_url))
        monkeypatch.setattr(extras, "distribution", lambda _: PathDistribution(tmp_path))
        command = shlex.split(install_command("stack,celery", "/srv/venv"))
        assert command == ["python", "-m", "pip", "install", f"pypi-assets[stack,celery] @ {origin}"]


def test_only_short_arguments_are_cached():
    calls: list[tuple[object, ...]] = []

    @cached_if_short(maxsize=8, longest=10)
    def joined(*parts: object) -> str:
        calls.append(parts)
        return str(parts)

    for short in (("a",), ("a", "b"), (("a", "b"), 1), (b"abc",)):
        before = len(calls)
        assert joined(*short) == joined(*short)
        assert len(calls) == before + 1
    for long in (("a" * 11,), ("a" * 6, "b" * 6), (("a" * 6, "b" * 6),), (tuple("a" * 9),), (b"a" * 11,)):
        before = len(calls)
        assert joined(*long) == joined(*long)
        assert len(calls) == before + 2


def test_times_are_in_utc_to_the_second():
    assert utc_text(1_772_366_400.9) == "2026-03-01T12:00:00Z"
    assert utc_text(None) is None
