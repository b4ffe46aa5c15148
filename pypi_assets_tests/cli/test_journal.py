"""The commands that write, check and change the journal."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.journal import publishing
from pypi_assets.journal.segment_files import Head, write_head
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.journal.written import flip_a_bit
from pypi_assets_tests.mirror.static_files import static_files
from pypi_assets_tests.named import unnamed


def test_ranges_are_written_once(commands: Commands, two_visits: TwoVisits) -> None:
    written = commands.json("journal", "write")
    assert [one["range"] for one in written] == [
        f"0-{two_visits.baseline}",
        f"{two_visits.baseline}-{two_visits.serial}",
    ]
    assert all(one["records"]["observed"] for one in written)
    assert commands.json("journal", "write") == []
    assert commands.done("journal", "write").stderr


def test_stream_is_restarted(commands: Commands, two_visits: TwoVisits) -> None:
    commands.done("journal", "write")
    assert unnamed(commands.done("journal", "restart", "observed").stderr, "2", "observed") == []
    again = commands.json("journal", "write")
    assert [one["range"] for one in again] == [f"{two_visits.baseline}-{two_visits.serial}"]


@pytest.mark.usefixtures("index")
def test_error_before_a_crawl_names_the_first_command(commands: Commands) -> None:
    assert unnamed(commands.refused("journal", "write"), "crawl full") == []


def test_old_segments_are_pruned(commands: Commands, two_visits: TwoVisits) -> None:
    commands.done("journal", "write")
    commands.refused("journal", "prune", "--before", two_visits.baseline)
    assert "--before" in commands.refused("journal", "prune", "--before", "someday", exit_code=2)
    commands.done("dump", "full", "--shards", "1")
    would = commands.json("journal", "prune", "--before", two_visits.baseline, "--dry-run")
    assert commands.json("journal", "prune", "--before", two_visits.baseline) == would
    assert [(one["stream"], one["segments"]) for one in would] == [
        ("index", 0),
        ("observed", 1),
        ("content", 1),
        ("visits", 1),
    ]
    printed = commands.done("journal", "prune", "--before", two_visits.baseline).stderr
    assert unnamed(printed, "observed", "0", f"{two_visits.baseline:,}") == []
    commands.refused("journal", "tail", "--since", 0)


def test_catalog_is_rebuilt_from_the_journal(commands: Commands, two_visits: TwoVisits, tmp_path: Path) -> None:
    commands.done("journal", "write")
    url = f"sqlite:///{tmp_path}/replayed.sqlite"
    done = commands.json("journal", "replay", "--into", url)
    assert (done["through"], done["dump"], done["began"]) == (two_visits.serial, None, "from nothing")
    again = commands.done("journal", "replay", "--into", url).stderr
    assert unnamed(again, "0") == []
    assert unnamed(again, f"{done['exact_from']:,}", f"{two_visits.serial:,}") == []


def test_unreplayable_journal_is_rejected(commands: Commands, two_visits: TwoVisits, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/replayed.sqlite"
    assert unnamed(commands.refused("journal", "replay", "--into", url), "journal write") == []
    commands.done("journal", "write")
    beyond = two_visits.serial + 1
    assert unnamed(commands.refused("journal", "replay", "--into", url, "--to", beyond), two_visits.serial) == []
    own = f"sqlite:///{commands.home}/catalog.sqlite"
    commands.refused("journal", "replay", "--into", own)


@pytest.mark.nightly
def test_web_server_has_the_base_dump(commands: Commands, two_visits: TwoVisits, tmp_path: Path) -> None:
    """Without directory listings, published.json names the current dumps."""
    commands.done("journal", "write")
    commands.done("dump", "full")
    url, last = f"sqlite:///{tmp_path}/replayed.sqlite", two_visits.serial
    with static_files(commands.home / "storage") as files:
        done = commands.json("journal", "replay", "--from", files.url, "--from-dump", "--into", url)
        assert (done["through"], done["exact_from"], done["dump"]) == (last, last, f"0-{last}")
        too_early = ("--from-dump", "--into", f"sqlite:///{tmp_path}/other.sqlite", "--to", last - 1)
        commands.refused("journal", "replay", "--from", files.url, *too_early)
        (commands.home / "storage" / "published.json").write_text('{"dumps": 5}')
        refused = commands.refused("journal", "replay", "--from", files.url, *too_early)
        assert unnamed(refused, "published.json") == []


def test_replay_before_exact_answers_names_the_first_exact_serial(
    commands: Commands, two_visits: TwoVisits, tmp_path: Path
) -> None:
    commands.done("journal", "write")
    command = ("journal", "replay", "--into", f"sqlite:///{tmp_path}/replayed.sqlite", "--to", 1)
    exact_from = commands.json(*command)["exact_from"]
    assert exact_from > 1
    assert unnamed(commands.done(*command).stderr, "1", exact_from) == []


def lines(commands: Commands) -> list[dict]:
    streams = (part for stream in JournalStream for part in ("--stream", stream.value))
    return [json.loads(line) for line in commands.done("journal", "tail", "--json", *streams).stdout.splitlines()]


def test_records_are_redacted_and_listed(commands: Commands, two_visits: TwoVisits) -> None:
    commands.done("journal", "write")
    name = next(one["normalized"] for one in lines(commands) if one["stream"] == "observed" and one["normalized"])
    assert commands.done("journal", "takedowns").stderr
    taken = commands.json("journal", "takedown", name, "--reason", "a court", "--hide-name")
    assert taken == {"takedown": 1, "records": sum(one["kind"] == "taken down" for one in lines(commands))}
    assert taken["records"] > 0
    assert name not in {one["normalized"] for one in lines(commands)}
    commands.done("journal", "verify")
    [row] = commands.json("journal", "takedowns")
    assert (row["id"], row["project"], row["reason"], row["hides_name"]) == (1, name, "a court", True)
    assert row["done"] is not None
    assert commands.done("journal", "takedowns").stdout.startswith("1\t")
    commands.refused("journal", "takedown", "--reason", "x", exit_code=2)
    assert unnamed(commands.refused("journal", "takedowns", "--lift", 9, exit_code=2), "9") == []
    assert "lifted" in commands.done("journal", "takedowns", "--lift", 1).stderr
    assert commands.json("journal", "takedowns") == []


def files(commands: Commands, pattern: str) -> list[Path]:
    return sorted(path for path in (commands.home / "storage" / "journal").glob(pattern) if path.is_file())


def test_journal_is_verified_signed_and_compared(
    commands: Commands, two_visits: TwoVisits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(publishing, "GRID", 2)
    commands.done("journal", "write")
    found = commands.json("journal", "verify")
    assert [(one["stream"], one["fault"], one["end"]) for one in found["streams"]] == [
        (stream, None, two_visits.serial) for stream in ("index", "observed", "content", "visits")
    ]
    key = Ed25519PrivateKey.generate()
    private, public = tmp_path / "key.pem", tmp_path / "public.pem"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    assert commands.run("journal", "verify", "--public-key", public).exit_code == 1
    assert unnamed(commands.done("journal", "sign", "--key", private).stderr, "observed") == []
    signed = commands.json("journal", "verify", "--public-key", public, "--stream", "observed")
    assert [one["signed_through"] for one in signed["streams"]] == [two_visits.serial]
    storage = (commands.home / "storage").as_uri()
    published = json.loads(open_storage(storage).get(PUBLISHED))["journal"]
    assert published["observed"]["checkpoint"]["end"] == two_visits.serial  # for mirrors
    compared = commands.json("journal", "verify", "--against", storage)["compared"]
    assert [(one["differing"], one["first"]) for one in compared] == [(0, None)] * 4
    shown = commands.done("journal", "verify", "--against", storage, "--public-key", public).stderr
    assert unnamed(shown, "0") == []
    write_head(open_storage(storage), Head("observed", 1, 0, 0, 0, None))
    set_back = commands.run("journal", "verify", "--public-key", public)
    assert set_back.exit_code == 1
    assert unnamed(set_back.stderr, "observed") == []


def test_verification_of_no_journal_names_the_command_that_writes_one(
    commands: Commands, two_visits: TwoVisits
) -> None:
    error = commands.refused("journal", "verify")
    assert "pypi-assets journal write" in error
    commands.done("journal", "write")
    for head in files(commands, "*/head.json"):
        head.unlink()
    result = commands.run("journal", "verify")
    assert (result.exit_code, result.stderr.count("head.json")) == (1, 4)


def test_flipped_byte_is_reported(commands: Commands, two_visits: TwoVisits) -> None:
    commands.done("journal", "write")
    segment = files(commands, "observed/0001/*.zst")[0]
    flip_a_bit(segment)
    result = commands.run("journal", "verify")
    assert result.exit_code == 1
    assert f"journal/observed/0001/{segment.name}" in result.stderr
    assert "index: " in result.stderr
