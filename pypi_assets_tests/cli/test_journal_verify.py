"""`pypi-assets journal verify` and `journal sign`: faults are named, and what is sound and signed is shown as such."""

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from pypi_assets.journal import publishing
from pypi_assets.journal.segment_files import Head, write_head
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.cli.conftest import TwoVisits
from pypi_assets_tests.journal.written import flip_a_bit
from pypi_assets_tests.named import unnamed


def files(commands: Commands, pattern: str) -> list[Path]:
    return sorted(path for path in (commands.home / "storage" / "journal").glob(pattern) if path.is_file())


def test_a_journal_is_verified_signed_and_compared(
    commands: Commands, two_visits: TwoVisits, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(publishing, "GRID", 2)
    commands.done("journal", "write")
    found = commands.json("journal", "verify")
    assert [(one["stream"], one["fault"], one["end"]) for one in found["streams"]] == [
        (stream, None, two_visits.serial) for stream in ("index", "observed", "content")
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
    assert [(one["differing"], one["first"]) for one in compared] == [(0, None)] * 3
    shown = commands.done("journal", "verify", "--against", storage, "--public-key", public).stderr
    assert unnamed(shown, "0") == []
    write_head(open_storage(storage), Head("observed", 1, 0, 0, 0, None))
    set_back = commands.run("journal", "verify", "--public-key", public)
    assert set_back.exit_code == 1
    assert unnamed(set_back.stderr, "observed") == []


def test_a_flipped_byte_is_named(commands: Commands, two_visits: TwoVisits) -> None:
    commands.done("journal", "write")
    segment = files(commands, "observed/0001/*.zst")[0]
    flip_a_bit(segment)
    result = commands.run("journal", "verify")
    assert result.exit_code == 1
    assert f"journal/observed/0001/{segment.name}" in result.stderr
    assert "index: " in result.stderr
