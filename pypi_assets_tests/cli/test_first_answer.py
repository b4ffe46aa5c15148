"""What the follower of a stack does first: nothing twice, and nothing that is there."""

from pathlib import Path

import pytest

from pypi_assets.assembly import storage_from
from pypi_assets.catalog.database import open_catalog
from pypi_assets.cli.first_answer import dump_commands, main
from pypi_assets.lookup.latest import open_latest
from pypi_assets.settings import load_settings
from pypi_assets_tests.served_index import followed_index


def test_first_answer_leads_from_nothing_to_answers_and_does_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    with followed_index(tmp_path, monkeypatch) as index:
        index.wheel("demo", "1.0")
        main([])
        with open_latest("depgraph", storage_from(load_settings())) as depgraph:
            assert [row["version"] for row in depgraph.project("demo").results] == ["1.0"]
        catalog = open_catalog(load_settings().resolved_database_url)
        assert dump_commands(catalog) == []
        catalog.close()
        capfd.readouterr()
        index.wheel("demo", "2.0")
        main([])
        assert capfd.readouterr() == ("", "")


def test_first_answer_an_index_that_is_gone_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with followed_index(tmp_path, monkeypatch):
        pass
    monkeypatch.setenv("PYPI_ASSETS_RETRY_PAUSE_S", "0.001")
    monkeypatch.setenv("PYPI_ASSETS_RETRY_DEADLINE_S", "0")
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "http://127.0.0.1:9/simple/")
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        main(["--follow"])
    assert ended.value.code == 1
