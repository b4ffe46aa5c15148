"""The commands `mirror ...`, and answers over a mirror, which has neither a catalog nor an index."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from packaging.utils import canonicalize_name

from pypi_assets.catalog.reports.journal_format import JournalStream
from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.journal.cursors import Cursor
from pypi_assets.journal.pruning import prune_journal
from pypi_assets.journal.segment_files import read_head
from pypi_assets.journal.signing import load_private_key, publish_heads, sign_checkpoint
from pypi_assets.mirror.mirror_state import mirror_status
from pypi_assets.service.service import open_service
from pypi_assets.settings import load_settings
from pypi_assets.storage.published import PUBLISHED
from pypi_assets.storage.store import open_storage
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.cli.test_imports import imported, libraries
from pypi_assets_tests.journal.written import flip_a_bit
from pypi_assets_tests.mirror.conftest import Origin, assert_whole
from pypi_assets_tests.mirror.conftest import changing_origin as changing_origin
from pypi_assets_tests.mirror.conftest import origin as origin
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.prometheus import samples
from pypi_assets_tests.service.published import client_of
from pypi_assets_tests.waiting import until

PATHS = ("simple/", "simple/demo/", "v1/modules/yaml", "v1/projects/demo", "project/demo", "module/yaml")


def reachable(commands: Commands) -> dict[str, float]:
    """Return the value of the metric `reachable` for each part."""
    found = samples(commands.done("admin", "metrics").stdout)
    return {key[1]: value for key, value in found.items() if key[0] == "reachable"}


def test_mirror_answers_lookups_pages_and_simple_index_without_a_catalog(commands: Commands, origin: Origin) -> None:
    command = ("mirror", "run", "--from", origin.files.url, "--latest-only")
    message = commands.done(*command).stderr
    assert "files (" in message
    assert unnamed(message, "27") == []
    assert unnamed(commands.done(*command).stderr, "27") == []
    assert not (commands.home / "catalog.sqlite").exists()

    found = commands.json("lookup", "module", "yaml")
    assert {one["project"] for one in found} == {"PyYAML", "yaml-copy"}
    assert commands.json("lookup", "dependents", "pyyaml")
    commands.refused("lookup", "module", "yaml", "--at", "5")
    assert reachable(commands) == {"storage": 1}
    assert ("to_do",) not in samples(commands.done("admin", "metrics").stdout)
    status = commands.json("status")
    assert (status["index_serial"], status["index_error"], status["to_do"]) == (None, None, [])
    assert unnamed(commands.done("status", "--check").stdout, "pypi-assets mirror status") == []

    with origin.published.client() as first:
        service = open_service(load_settings(service_refresh_s=3600))
        try:
            with client_of(service) as last:
                for path in (
                    "simple/",
                    "simple/demo/",
                    "v1/modules/yaml",
                    "v1/projects/demo",
                    "project/demo",
                    "module/yaml",
                ):
                    accepts = {"Accept": "application/vnd.pypi.simple.v1+json"} if "simple" in path else {}
                    here, there = (client.get(path, headers=accepts) for client in (last, first))
                    assert (path, here.status_code) == (path, there.status_code)
                    if path == "simple/demo/":
                        pages = here.json(), there.json()
                        assert pages[1]["meta"].pop("_last-serial") == 27  # it is in a catalog
                        assert pages[0] == pages[1]
                    elif path == "simple/":  # serials and displayed names are in a catalog
                        listed = ([project["name"] for project in one.json()["projects"]] for one in (here, there))
                        assert [sorted(map(canonicalize_name, names)) for names in listed] == [
                            ["demo", "other-app", "pyyaml", "yaml-copy"]
                        ] * 2
        finally:
            service.close()


def test_journal_replay_is_the_only_write_to_a_mirror(commands: Commands, origin: Origin) -> None:
    message = commands.done("mirror", "run", "--from", origin.storage.url).stderr
    assert unnamed(message, "0", "27") == []
    past = commands.json("lookup", "module", "yaml", "--at", "12")
    assert "PyYAML" in {one["project"] for one in past}
    status = commands.json("mirror", "status")
    assert (status["past_from"], status["past_to"]) == (0, 27)
    assert unnamed(commands.done("mirror", "status").stderr, "0", "27") == []
    refused = commands.refused("dump", "full")
    assert unnamed(refused, "mirror run") == []
    assert reachable(commands) == {"storage": 1, "catalog": 1}


def test_mirror_without_a_journal_has_no_catalog(commands: Commands, origin: Origin, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(origin.storage.root, source, ignore=shutil.ignore_patterns("journal"))
    published = source / PUBLISHED
    published.write_text(json.dumps({**json.loads(published.read_text()), "journal": {}}))
    message = commands.done("mirror", "run", "--from", source.as_uri()).stderr
    assert unnamed(message, "27") == []
    assert not (commands.home / "catalog.sqlite").exists()
    assert commands.json("mirror", "status")["past_from"] is None


def test_source_is_trusted_only_by_its_key(commands: Commands, origin: Origin, tmp_path: Path) -> None:
    source, private, public = tmp_path / "source", tmp_path / "private.pem", tmp_path / "public.pem"
    shutil.copytree(origin.storage.root, source)
    key = Ed25519PrivateKey.generate()
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    command = ("mirror", "run", "--from", source.as_uri(), "--latest-only", "--public-key", str(public))
    commands.refused(*command)
    commands.refused(*command[:-1], str(private))
    storage = open_storage(source.as_uri())
    for stream in (JournalStream.OBSERVED, JournalStream.CONTENT, JournalStream.VISITS):  # index has no segment yet
        sign_checkpoint(storage, stream, load_private_key(private))
    publish_heads(storage)
    assert unnamed(commands.done(*command).stderr, "27") == []
    verify = ("journal", "verify", "--public-key", str(public))
    shown = commands.done(*verify).stderr
    assert unnamed(shown, "27") == []
    only_index = commands.run(*verify, "--stream", "index")
    assert only_index.exit_code == 1
    assert only_index.stderr


def test_status_is_readable_and_json(commands: Commands, origin: Origin) -> None:
    open_storage((commands.home / "storage").as_uri())
    assert unnamed(commands.refused("mirror", "status"), "mirror") == []
    command = ("mirror", "run", "--from", origin.files.url, "--latest-only", "--json")
    done = json.loads(commands.done(*command).stdout)
    assert done["files"] > 0
    assert (done["dumps_serial"], done["deleted"], done["unknown_datasets"]) == (27, 0, [])
    status = commands.json("mirror", "status")
    assert (status["state"], status["dumps_serial"], status["source"]) == ("following", 27, origin.files.url)
    commands.refused("mirror", "run", "--from", "http://127.0.0.1:9")
    text = commands.done("mirror", "status").stderr
    assert unnamed(text, "http://127.0.0.1:9") == []
    assert unnamed(text, "27") == []


def test_invalid_url_and_second_run_are_rejected(commands: Commands, origin: Origin) -> None:
    commands.refused("mirror", "run", "--from", "rsync://x/y")
    missing = commands.refused("mirror", "run", "--from", "file:///none/here")
    assert unnamed(missing, "file:///none/here") == []
    assert "crawl full" not in missing  # another instance writes the source
    commands.home.mkdir(exist_ok=True)
    with (commands.home / "mirror.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        message = commands.refused("mirror", "run", "--from", origin.files.url)
        assert unnamed(message, "mirror") == []


@pytest.mark.nightly
def test_mirror_follows_until_stopped_or_killed(commands: Commands, origin: Origin) -> None:
    storage = open_storage((commands.home / "storage").as_uri())
    command = [*PROCESS, "mirror", "run", "--from", origin.files.url, "--follow", "--interval", "1", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ) as killed:
        assert killed.stdout is not None
        assert json.loads(killed.stdout.readline())["files"] > 0
        killed.kill()
    assert_whole(storage)
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ) as stopped:
        checked_at = mirror_status(storage).checked_at
        until(lambda: stopped.poll() is not None or mirror_status(storage).checked_at != checked_at)
        assert stopped.poll() is None
        stopped.send_signal(signal.SIGINT)
        _, errors = stopped.communicate()
    assert stopped.returncode == 130
    assert b"Stopped." in errors
    assert_whole(storage)


@pytest.mark.nightly
def test_mirrored_journal_is_verified_and_pruned_with_its_source(changing_origin: Origin, commands: Commands) -> None:
    origin = changing_origin  # this clears the settings, so it comes before the commands that have settings
    begun = read_head(origin.storage, "observed").readable_from
    before = origin.publish()
    last = origin.publish()
    full_dump(origin.published.catalog, origin.storage, 1)
    assert prune_journal(origin.published.catalog, origin.storage, before)[1].segments > 0
    assert begun < read_head(origin.storage, "observed").readable_from == before
    commands.done("mirror", "run", "--from", origin.files.url, "--latest-only")

    command = ("journal", "verify", "--against", origin.files.url)
    found = commands.json(*command)
    assert [(one["stream"], one["fault"], one["end"]) for one in found["streams"]] == [
        ("index", None, last),
        ("observed", None, last),
        ("content", None, last),
        ("visits", None, last),
    ]
    assert [(one["differing"], one["first"]) for one in found["compared"]] == [(0, None)] * 4
    lines = commands.done("journal", "tail", "--since", before, "--json").stdout.splitlines()
    assert {json.loads(line)["serial"] for line in lines} == {last - 1, last}
    commands.refused("journal", "tail", "--since", "2026-01-01", exit_code=2)
    commands.refused("journal", "tail", "--consumer", "one")
    service = open_service(load_settings(service_refresh_s=3600))
    try:
        with client_of(service) as client:
            read = {"Last-Event-ID": str(Cursor.after_serial(begun))}
            for path, headers in ((f"v1/changes?since={begun}", {}), ("v1/changes/stream", read)):
                answer = client.get(path, headers=headers)
                assert (answer.status_code, answer.json()["parameter"]) == (410, "since"), path
                assert unnamed(answer.json()["detail"], before) == [], path
            page = client.get("v1/changes").json()
            assert (page["through"], len(page["changes"])) == (last, len(lines))
    finally:
        service.close()

    segment = next((commands.home / "storage" / "journal" / "content" / "0001").glob("*.zst"))
    flip_a_bit(segment)
    result = commands.run(*command)
    assert result.exit_code == 1
    assert f"journal/content/0001/{segment.name}" in result.stderr


def test_copying_does_not_import_sqlalchemy(commands: Commands, origin: Origin) -> None:
    """SQLAlchemy takes half a second to import, and copying the newest files uses no catalog."""
    found = imported("mirror", "run", "--from", origin.storage.url, "--latest-only")
    assert "pypi_assets.mirror.following" in found
    assert not {"sqlalchemy", "alembic", "pandas"} & libraries(found)
