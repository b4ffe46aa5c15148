"""Commands close everything that they opened, even if they fail, and open nothing without a contact."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from pypi_assets.catalog.database import Catalog
from pypi_assets.cli import OwnProcess, cli
from pypi_assets.cli.contexts import opened_catalog, opened_crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.distributions.containment import kernel
from pypi_assets.settings import load_settings
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_remote_index_without_a_contact_is_rejected(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "https://index.example.org/simple/")
    assert unnamed(commands.refused("crawl", "full", exit_code=2), "PYPI_ASSETS_CONTACT") == []
    assert not commands.home.exists()
    assert unnamed(commands.json("status")["index_error"], "PYPI_ASSETS_CONTACT") == []


def test_catalog_is_closed_if_the_command_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Catalog] = []
    close = Catalog.close
    monkeypatch.setattr(Catalog, "close", lambda catalog: (closed.append(catalog), close(catalog)))
    settings = load_settings(home=tmp_path)
    with opened_catalog(settings) as catalog:
        assert closed == []
    with pytest.raises(ZeroDivisionError), opened_catalog(settings) as other:
        raise ZeroDivisionError
    assert closed == [catalog, other]


def test_crawler_reports_progress_and_messages_on_the_terminal(
    commands: Commands, index: ServedIndex, capsys: pytest.CaptureFixture[str]
) -> None:
    index.wheel("demo", "1.0")
    with opened_crawler(creates=True) as crawler:
        crawler.notify("odd")
        crawl_full(crawler)
    output = capsys.readouterr()
    message, *stages = output.err.splitlines()
    assert (output.out, message) == ("", "odd")
    assert [stage.partition(":")[0] for stage in stages] == ["listing", "visits", "reads"]


@pytest.mark.skipif(not kernel.IS_LINUX, reason="requires Linux")
def test_process_is_undumpable_only_while_a_command_reads(index: ServedIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[bool] = []
    monkeypatch.setattr(kernel, "set_undumpable", lambda: done.append(True))
    for command in (["crawl", "full"], ["admin", "reprocess"]):
        assert CliRunner().invoke(cli, command).exit_code == 0
        assert done == []
        assert CliRunner().invoke(cli, command, obj=OwnProcess()).exit_code == 0
        assert done == [True]
        done.clear()
    assert CliRunner().invoke(cli, ["status"], obj=OwnProcess()).exit_code == 0
    assert done == []


@pytest.mark.nightly
def test_second_catalog_does_not_write_to_the_storage_of_the_first(
    commands: Commands, two_visits: TwoVisits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands.done("dump", "full", "--shards", "1")
    storage = commands.home / "storage"
    before = {path: path.read_bytes() for path in storage.rglob("*") if path.is_file()}
    key = tmp_path / "key.pem"
    key.write_bytes(Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "second"))
    commands.done("crawl", "full")
    monkeypatch.setenv("PYPI_ASSETS_STORAGE_URL", storage.as_uri())
    for command in (
        "crawl full",
        "crawl incremental",
        "admin reprocess",
        "dump full",
        "dump incremental",
        "dump compact",
        "dump clean",
        "admin extracts clean",
        "leveldb update",
        "journal write",
        "journal restart index",
        "journal takedown demo --reason order",
        "journal prune --before 1",
        f"journal sign --key {key}",
    ):
        commands.refused(*command.split())
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(tmp_path / "third"))
    commands.refused("crawl", "full")
    assert {path: path.read_bytes() for path in storage.rglob("*") if path.is_file()} == before
