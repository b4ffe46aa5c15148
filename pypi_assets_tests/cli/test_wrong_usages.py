"""Common mistakes with each command and setting cause one clear message that names the cause, and never a traceback."""

import os
import re
import signal
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from pypi_assets.catalog.database import open_catalog
from pypi_assets.leveldbs.datasets.registry import DATASETS
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.served_index import ServedIndex

USAGE, FAILURE = 2, 1
MOST_LINES = 2

OPTIONS = [
    ("lokup module yaml", "'lokup' 'lookup'"),
    ("--verison", "'--verison' '--version'"),
    ("crawl ful", "'ful' 'full'"),
    ("crawl full extra", "(extra)"),
    ("crawl full --whit-history", "'--whit-history' '--with-history'"),
    ("lookup modul yaml", "'modul' 'module'"),
    ("lookup yaml", "'yaml' lookup module yaml"),
    ("lookup module", "'NAME'"),
    ("lookup module yaml --limit 0", "'--limit' 0 x>=1"),
    ("lookup module yaml --limit many", "'--limit' 'many'"),
    ("lookup module yaml --at -1", "'--at' -1 1350 2026-03-03"),
    ("lookup project a,b", "'a,b' NAME==VERSION"),
    ("lookup hash abc", "'abc' 64"),
    ("lookup hash --file none.whl", "'--file' 'none.whl'"),
    ("lookup hash --file folder", "'--file' 'folder'"),
    ("lookup hash", "SHA256 --file"),
    ("lookup files a,b", "PROJECT 'a,b'"),
    ("lookup files --at now", "'--at' 'now'"),
    ("history", "'PROJECT'"),
    ("visits demo --compare 1", "'--compare' 2"),
    ("visits demo --compare 0 2", "'--compare' 0 x>=1"),
    ("dump full --shards 7", "'--shards' '7' '1' '16' '256'"),
    ("dump full --concurrency 99", "'--concurrency' 99 1<=x<=12"),
    ("dump compact --growth 0", "'--growth' 0 x>=1"),
    ("dump compact --most 1", "'--most' 1 x>=2"),
    ("leveldb update --dataset nope", " ".join(map(repr, ("nope", *DATASETS)))),
    ("leveldb verify --version 0", "'--version' 0 x>=1"),
    ("admin metrics --listen 9464", "9464 HOST:PORT 127.0.0.1:9464"),
    ("admin metrics --listen 127.0.0.1:99999", "127.0.0.1:99999 HOST:PORT"),
    ("admin metrics --every 0", "'--every' 0.0 x>=1"),
    ("admin metrics --file none/pypi.prom", "/none"),
    ("admin metrics --file folder", "'--file' 'folder'"),
    ("admin audit --share 101", "'--share' 101.0 0<=x<=100"),
    ("admin audit --share x", "'--share' 'x'"),
    ("admin reprocess --processes 0", "'--processes' 0 x>=1"),
    ("admin inspect", "'FILES...'"),
    ("admin inspect none.whl", "'none.whl'"),
    ("admin inspect folder", "'folder'"),
    ("admin inspect file --project demo", "--project --from-extract"),
    ("devindex serve", "'FOLDER'"),
    ("devindex serve folder --port 99999", "'--port' 99999 0<=x<=65535"),
    ("devindex serve file", "'FOLDER' 'file'"),
    ("devindex add folder none.whl", "'none.whl'"),
    ("history \udcff\udcfe", "UTF-8 '\\udcff\\udcfe'"),
    ("\udcff", "UTF-8 '\\udcff'"),
]
"""Command lines that are always invalid, and the values in their message, separated by spaces."""

SETTINGS = [
    ("DATABASE_URL", "mysql://localhost/catalog", "sqlite:/// postgresql://"),
    ("DATABASE_URL", "sqlite://", "sqlite:///"),
    ("STORAGE_URL", "ftp://host/path", "file:// s3:// gs:// az:// memory://"),
    ("STORAGE_URL", "file://relative", "file:///PATH"),
    ("STORAGE_URL", "s3:///prefix", "s3://"),
    ("INDEX_URL", "http://127.0.0.1:9/simple/?format=json", "query"),
    ("INDEX_URL", "127.0.0.1:9/simple/", "http"),
    ("CONTACT", "me", "URL"),
    ("PROJECTS", "none.txt", "file"),
    ("PROJECTS", "a b$c", "b$c"),
    ("MAX_CONNECTIONS", "-3", "1"),
    ("REQUESTS_PER_SECOND", "fast", "number"),
    ("ALLOWED_FILE_HOSTS", "files.example.org", "auto JSON"),
    ("PROXY", "proxy:3128", "http"),
    ("CA_FILE", "none.pem", "none.pem"),
    ("LISTER", "rss", "'rss' 'auto' 'xmlrpc' 'simple' 'pages'"),
    ("SENSORS_ON", "perhaps", "boolean"),
    ("LEVELDB_VERSIONS_KEPT", "0", "1"),
    ("ENV_FILE", "none.env", "none.env"),
]
"""Settings with an invalid value, and the values named next to the variable in the message of `status`."""

PLACES = [
    ("crawl full", {"INDEX_URL": "https://index.example.org/simple/"}, USAGE, "PYPI_ASSETS_CONTACT"),
    ("crawl full", {}, FAILURE, "http://127.0.0.1:9/simple/"),
    ("lookup files", {"HOME": "none"}, FAILURE, "none/catalog.sqlite PYPI_ASSETS_HOME"),
    ("crawl full", {"HOME": "file/below"}, FAILURE, "file/below PYPI_ASSETS_HOME"),
    ("lookup files", {"DATABASE_URL": "sqlite:///file"}, FAILURE, "sqlite:///file PYPI_ASSETS_DATABASE_URL"),
    ("lookup files", {"DATABASE_URL": "sqlite:///newer.sqlite"}, FAILURE, "9999"),
    (
        "lookup files",
        {"DATABASE_URL": "postgresql://me:secret@127.0.0.1:9/catalog"},
        FAILURE,
        "PYPI_ASSETS_DATABASE_URL",
    ),
    ("lookup module demo", {"HOME": "none"}, FAILURE, "PYPI_ASSETS_HOME PYPI_ASSETS_STORAGE_URL"),
    ("lookup module demo", {"STORAGE_URL": "file:///none/here"}, FAILURE, "/none/here"),
    ("lookup module demo", {"STORAGE_URL": "s3://none/here"}, FAILURE, "s3://none/here/modules/input_lists"),
    ("leveldb list", {"STORAGE_URL": "file:///none/here"}, FAILURE, "/none/here"),
    ("admin inspect --from-extract demo-1.0.tar.gz", {}, FAILURE, "PYPI_ASSETS_HOME"),
    ("devindex yank folder nope 1", {}, FAILURE, "nope"),
]
"""Command lines for an empty home with an unusable path or server, and the values in their message."""

AFTER_A_CRAWL = [
    ("lookup files --at 99999999", "99999999"),
    ("lookup module demo_module --at 99999999", "99999999"),
    ("visits demo --compare 1 99", "99"),
]
"""Command lines that name missing things, although the catalog is filled."""


@pytest.fixture(autouse=True)
def places(commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Create the paths named by the command lines in the current folder. No server listens at the port of S3."""
    Path("file").write_bytes(b"neither folder nor database" * 100)
    Path("folder").mkdir()
    open_catalog("sqlite:///newer.sqlite").close()
    with closing(sqlite3.connect("newer.sqlite")) as newer:
        newer.execute("UPDATE alembic_version SET version_num = '9999'")
        newer.commit()
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }.items():
        monkeypatch.setenv(name, value)


def message(commands: Commands, line: str, exit_code: int) -> str:
    """Return the message for an invalid command line, without usage lines: one or two lines, and no secret."""
    shown = commands.refused(*line.split(), exit_code=exit_code)
    lines = [one for one in shown.splitlines() if one and not one.startswith(("Usage: ", "Try '"))]
    assert 0 < len(lines) <= MOST_LINES, shown
    assert lines[-1].startswith("Error: ") or lines[0].startswith("Error: "), shown
    assert "secret" not in shown
    assert "[Errno" not in shown
    return "\n".join(lines)


def in_bash(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command as `"$@"` of a script."""
    line = ["bash", "-c", script, "bash", *PROCESS, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def unnamed(expected: str, shown: str) -> list[str]:
    """Return the values that the message does not name."""
    return [value for value in expected.split(" ") if value not in shown]


def test_invalid_command_line_error_names_the_argument(commands: Commands, subtests: pytest.Subtests) -> None:
    for line, expected in OPTIONS:
        with subtests.test(line=ascii(line)):
            assert unnamed(expected, message(commands, line, USAGE)) == []


def test_invalid_setting_error_names_accepted_values(commands: Commands, subtests: pytest.Subtests) -> None:
    for name, value, expected in SETTINGS:
        with subtests.test(name=name, value=value), pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setenv(f"PYPI_ASSETS_{name}", value)
            shown = message(commands, "status", USAGE)
            assert re.findall(r"PYPI_ASSETS_\w+", shown)[0] == f"PYPI_ASSETS_{name}"
            assert unnamed(expected, shown) == []


def test_unusable_place_is_named(commands: Commands, subtests: pytest.Subtests) -> None:
    for number, (line, settings, exit_code, expected) in enumerate(PLACES):
        with subtests.test(line=line, settings=settings), pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr("pypi_assets.storage.store.RETRIES", {"max_retries": 0})
            for name, value in ({"HOME": f"home{number}"} | settings).items():
                monkeypatch.setenv(f"PYPI_ASSETS_{name}", value)
            assert unnamed(expected, message(commands, line, exit_code)) == []


def test_missing_thing_is_named(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    for line, expected in AFTER_A_CRAWL:
        assert expected in message(commands, line, FAILURE), line


def test_misspelled_variable_is_reported_and_the_command_continues(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_HOMEE", "/data")
    shown = commands.done("status").stderr.splitlines()[0]
    assert re.findall(r"PYPI_ASSETS_\w+", shown) == ["PYPI_ASSETS_HOMEE", "PYPI_ASSETS_HOME"]


def test_full_disk_is_reported_in_one_line(commands: Commands) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROCESS, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == FAILURE
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1


def test_reader_that_stops_early_is_ignored(commands: Commands) -> None:
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$@" | head -1', "bash", *PROCESS, "admin", "settings"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("PYPI_ASSETS_")
    assert done.stderr == ""


def test_closed_standard_input_has_no_names(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    done = subprocess.run(
        ["bash", "-c", '"$@" <&-', "bash", *PROCESS, "lookup", "module", "-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_ctrl_c_ends_a_lookup_of_names(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    with subprocess.Popen(
        [*PROCESS, "lookup", "module", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("demo_module\n")
        process.stdin.flush()
        assert "demo" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write anything")
def test_home_without_write_permission_is_named(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("folder").chmod(0o500)
    monkeypatch.setenv("PYPI_ASSETS_HOME", "folder/home")
    assert "folder/home" in message(commands, "crawl full", FAILURE)


@pytest.mark.nightly
def test_tables_have_the_same_options(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    commands.build_versions()
    index.wheel("demo", "2.0")
    commands.done("crawl", "incremental")
    for line, first_columns in {
        "failures list": ("kind", "count"),
        "failures list --project broken": ("project", "filename"),
        "admin ranges": ("range", "state"),
        "leveldb list": ("dataset", "version"),
        "visits demo": ("visit", "scope"),
        "history demo": ("serial", "time"),
        "lookup files": ("filename", "project"),
    }.items():
        rows = commands.done(*line.split()).stdout.splitlines()
        with_header = commands.done(*line.split(), "--header").stdout.splitlines()
        assert with_header[0].startswith("\t".join(first_columns)), line
        assert with_header[1:] == rows
        csv_header = ",".join(f'"{column}"' for column in first_columns)
        as_csv = commands.done(*line.split(), "--csv", "--header").stdout.splitlines()
        assert as_csv[0].startswith(csv_header), line
        assert len(as_csv) == len(with_header) > 1
        assert "--csv" in commands.refused(*line.split(), "--json", "--csv", exit_code=USAGE)


@pytest.mark.nightly
@pytest.mark.parametrize("line", ["devindex serve folder --port {port}", "admin metrics --listen 127.0.0.1:{port}"])
def test_port_in_use_is_named_with_a_remedy(commands: Commands, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.setenv("PYPI_ASSETS_REQUEST_ATTEMPTS", "1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*PROCESS, *line.format(port=port).split()], capture_output=True, text=True, timeout=300, check=False
        )
    assert done.returncode == FAILURE
    assert done.stderr.startswith("Error: ")
    assert len(done.stderr.splitlines()) == 1
    assert str(port) in done.stderr
    assert "[Errno" not in done.stderr
