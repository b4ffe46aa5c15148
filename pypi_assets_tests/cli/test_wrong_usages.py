"""What people get wrong, in each command and setting: one clear message that names the thing, and never a traceback."""

import os
import signal
import socket
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from pypi_assets.catalog.database import open_catalog
from pypi_assets_tests.cli.commands import PROCESS, Commands
from pypi_assets_tests.served_index import ServedIndex

USAGE, FAILURE = 2, 1
MOST_LINES = 2

OPTIONS = [
    ("lokup module yaml", "No such command 'lokup'. Did you mean 'lookup'?"),
    ("--verison", "No such option '--verison'. Did you mean '--version'?"),
    ("crawl ful", "No such command 'ful'. Did you mean 'full'?"),
    ("crawl full extra", "Got unexpected extra argument (extra)"),
    ("crawl full --whit-history", "No such option '--whit-history'. Did you mean '--with-history'?"),
    ("lookup modul yaml", "No such command 'modul'. Did you mean 'module'?"),
    ("lookup yaml", "No such command 'yaml'. Did you mean 'lookup module yaml'?"),
    ("lookup module", "Missing argument 'NAME'."),
    ("lookup module yaml --limit 0", "Invalid value for '--limit': 0 is not in the range x>=1."),
    ("lookup module yaml --limit many", "Invalid value for '--limit': 'many' is not a valid integer"),
    ("lookup module yaml --at-serial -1", "Invalid value for '--at-serial': -1 is not in the range x>=0."),
    ("lookup module yaml --prefix --at-serial 3", "--prefix goes"),
    ("lookup project a,b", "'a,b' is neither a project's NAME nor NAME==VERSION"),
    ("lookup hash abc", "'abc' is not a sha256, which has 64 hex digits"),
    ("lookup hash --file none.whl", "Invalid value for '--file': File 'none.whl' does not exist."),
    ("lookup hash --file folder", "Invalid value for '--file': File 'folder' is a directory."),
    ("lookup hash", "nothing is named: give NAME, --file, or - for names from standard input"),
    ("files --project", "Option '--project' requires an argument."),
    ("files --at-serial now", "Invalid value for '--at-serial': 'now' is not a valid integer"),
    ("history", "Missing argument 'PROJECT'."),
    ("visits demo --compare 1", "Option '--compare' requires 2 arguments."),
    ("visits demo --compare 0 2", "Invalid value for '--compare': 0 is not in the range x>=1."),
    ("dump full --shards 7", "Invalid value for '--shards': '7' is not one of '1', '16', '256'."),
    ("dump full --concurrency 99", "Invalid value for '--concurrency': 99 is not in the range 1<=x<=12."),
    ("dump compact --growth 0", "Invalid value for '--growth': 0 is not in the range x>=1."),
    ("dump compact --most 1", "Invalid value for '--most': 1 is not in the range x>=2."),
    ("leveldb update --dataset nope", "'nope' is not one of 'modules', 'depgraph', 'commands', 'hashes', 'simple'"),
    ("leveldb verify --version 0", "Invalid value for '--version': 0 is not in the range x>=1."),
    ("metrics --listen 9464", "9464 is not HOST:PORT, such as 127.0.0.1:9464"),
    ("metrics --listen 127.0.0.1:99999", "127.0.0.1:99999 is not HOST:PORT"),
    ("metrics --every 0", "Invalid value for '--every': 0.0 is not in the range x>=1."),
    ("metrics --file none/pypi.prom", "/none; make it, or choose another"),
    ("metrics --file folder", "Invalid value for '--file': File 'folder' is a directory."),
    ("audit --share 101", "Invalid value for '--share': 101.0 is not in the range 0<=x<=100."),
    ("audit --share x", "Invalid value for '--share': 'x' is not a valid number."),
    ("reprocess --processes 0", "Invalid value for '--processes': 0 is not in the range x>=1."),
    ("inspect", "Missing argument 'FILES...'."),
    ("inspect none.whl", "file 'none.whl' does not exist"),
    ("inspect folder", "'folder' is a folder: name files in it"),
    ("inspect file --project demo", "--project: it is used only with --from-extract"),
    ("devindex serve", "Missing argument 'FOLDER'."),
    ("devindex serve folder --port 99999", "Invalid value for '--port': 99999 is not in the range 0<=x<=65535."),
    ("devindex serve file", "Invalid value for 'FOLDER': Directory 'file' is a file."),
    ("devindex add folder none.whl", "File 'none.whl' does not exist."),
    ("completion tcsh", "'tcsh' is not one of 'bash', 'zsh', 'fish'."),
    ("history \udcff\udcfe", "not in UTF-8: '\\udcff\\udcfe'"),
    ("\udcff", "not in UTF-8: '\\udcff'"),
]
"""Command lines that are wrong as they stand, with a part of the message. The last line of it is the message."""

SETTINGS = [
    ("DATABASE_URL", "mysql://localhost/catalog", "neither sqlite:///... nor postgresql://...; it accepts sqlite:///"),
    ("DATABASE_URL", "sqlite://", "names no file: sqlite:////absolute/path or sqlite:///relative/path"),
    ("STORAGE_URL", "ftp://host/path", "not file://, s3://, gs://, az:// or memory://; it accepts file:///PATH"),
    ("STORAGE_URL", "file://relative", "not an absolute path: file:///PATH"),
    ("STORAGE_URL", "s3:///prefix", "names no bucket"),
    ("INDEX_URL", "http://127.0.0.1:9/", "does not end in /simple/"),
    ("INDEX_URL", "127.0.0.1:9/simple/", "not an http(s) URL"),
    ("CONTACT", "me", "neither a mail address nor a URL; it accepts a mail address or a URL"),
    ("PROJECTS", "none.txt", "cannot read the file of project names"),
    ("PROJECTS", "a b$c", "not a project name: b$c"),
    ("MAX_CONNECTIONS", "-3", "greater than or equal to 1"),
    ("REQUESTS_PER_SECOND", "fast", "valid number"),
    ("ALLOWED_FILE_HOSTS", "files.example.org", "neither auto nor valid JSON"),
    ("PROXY", "proxy:3128", "not an http(s) URL"),
    ("CA_FILE", "none.pem", "there is no none.pem"),
    ("LISTER", "rss", "'rss' is no kind of index; here, it can be 'auto', 'xmlrpc', 'simple' or 'pages'"),
    ("SENSORS_ON", "perhaps", "valid boolean"),
    ("LEVELDB_VERSIONS_KEPT", "0", "greater than or equal to 1"),
    ("ENV_FILE", "none.env", "cannot read none.env: No such file or directory"),
]
"""Settings with a wrong value, and a part of the message of `status`, which begins with the variable."""

PLACES = [
    ("crawl full", {"INDEX_URL": "https://index.example.org/simple/"}, USAGE, "PYPI_ASSETS_CONTACT is not set"),
    ("crawl full", {}, FAILURE, "Connection refused (http://127.0.0.1:9/simple/)"),
    ("files", {"HOME": "none"}, FAILURE, "there is no catalog in "),
    ("crawl full", {"HOME": "file/below"}, FAILURE, "Not a directory; set PYPI_ASSETS_HOME to one that is writable"),
    ("files", {"DATABASE_URL": "sqlite:///file"}, FAILURE, "file is not a database; check PYPI_ASSETS_DATABASE_URL"),
    ("files", {"DATABASE_URL": "sqlite:///newer.sqlite"}, FAILURE, "a newer version has migrated it; upgrade"),
    (
        "files",
        {"DATABASE_URL": "postgresql://me:secret@127.0.0.1:9/catalog"},
        FAILURE,
        "check PYPI_ASSETS_DATABASE_URL",
    ),
    ("lookup module demo", {"HOME": "none"}, FAILURE, "or check PYPI_ASSETS_HOME, PYPI_ASSETS_STORAGE_URL"),
    ("lookup module demo", {"STORAGE_URL": "file:///none/here"}, FAILURE, "there is no storage folder /none/here"),
    ("lookup module demo", {"STORAGE_URL": "s3://none/here"}, FAILURE, "s3://none/here/modules/input_lists: "),
    ("leveldb list", {"STORAGE_URL": "file:///none/here"}, FAILURE, "there is no storage folder /none/here"),
    ("inspect --from-extract demo-1.0.tar.gz", {}, FAILURE, "there is no catalog in "),
    ("devindex yank folder nope 1", {}, FAILURE, "no project nope on the index; check its name"),
]
"""Command lines over an empty home that meet a place or a server that cannot be used."""

AFTER_A_CRAWL = [
    ("files --at-serial 99999999", "there is no answer for serial 99999999, only for serial "),
    ("lookup module demo_module --at-serial 99999999", "99999999"),
    ("visits demo --compare 1 99", "99"),
]
"""Command lines that name what is not there, though the catalog is filled."""


@pytest.fixture(autouse=True)
def places(commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command lines name, in the current folder; S3 is reached at a port where no server listens."""
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
    """What a wrong command line prints, without the lines about usage: one line or two, and no secret."""
    shown = commands.refused(*line.split(), exit_code=exit_code)
    lines = [one for one in shown.splitlines() if one and not one.startswith(("Usage: ", "Try '"))]
    assert 0 < len(lines) <= MOST_LINES, shown
    assert lines[-1].startswith("Error: ") or lines[0].startswith("Error: "), shown
    assert "secret" not in shown
    assert "[Errno" not in shown
    return "\n".join(lines)


def in_bash(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs a command as `"$@"` of a script."""
    line = ["bash", "-c", script, "bash", *PROCESS, *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("line", "expected"), OPTIONS)
def test_a_wrong_command_line_names_the_argument(commands: Commands, line: str, expected: str) -> None:
    assert expected in message(commands, line, USAGE)


@pytest.mark.parametrize(("name", "value", "expected"), SETTINGS)
def test_a_wrong_setting_is_named_with_what_it_accepts(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(f"PYPI_ASSETS_{name}", value)
    shown = message(commands, "status", USAGE)
    assert shown.startswith(f"Error: PYPI_ASSETS_{name}: ")
    assert expected in shown
    assert "; it accepts " in shown


@pytest.mark.parametrize(("line", "settings", "exit_code", "expected"), PLACES)
def test_a_place_that_cannot_be_used_is_named(
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    settings: dict[str, str],
    exit_code: int,
    expected: str,
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"PYPI_ASSETS_{name}", value)
    assert expected in message(commands, line, exit_code)


def test_what_is_not_there_is_named(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    for line, expected in AFTER_A_CRAWL:
        assert expected in message(commands, line, FAILURE), line


def test_a_misspelled_variable_is_reported_and_the_command_goes_on(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYPI_ASSETS_HOMEE", "/data")
    shown = commands.done("status").stderr
    assert shown.splitlines()[0].startswith(
        "PYPI_ASSETS_HOMEE is no setting and has no effect; did you mean PYPI_ASSETS_HOME?"
    )


def test_a_full_disk_is_one_line(commands: Commands) -> None:
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run([*PROCESS, "--help"], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == FAILURE
    assert done.stderr == "Error: cannot write the output: No space left on device\n"


def test_a_reader_that_stops_early_is_no_error(commands: Commands) -> None:
    done = subprocess.run(
        ["bash", "-c", 'set -o pipefail; "$@" | head -1', "bash", *PROCESS, "man"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith(".TH")
    assert done.stderr == ""


def test_names_from_a_closed_standard_input_are_none(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    done = subprocess.run(
        ["bash", "-c", '"$@" <&-', "bash", *PROCESS, "lookup", "module", "-"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr


def test_ctrl_c_at_a_look_up_of_names_ends_it(commands: Commands, index: ServedIndex) -> None:
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
def test_a_home_without_the_right_to_write_is_named(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("folder").chmod(0o500)
    monkeypatch.setenv("PYPI_ASSETS_HOME", "folder/home")
    assert "folder/home" in message(commands, "crawl full", FAILURE)


def test_every_table_has_the_same_options(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    commands.build_versions()
    index.wheel("demo", "2.0")
    commands.done("crawl", "incremental")
    for line, first_columns in {
        "failures list": ("kind", "count"),
        "failures list --project broken": ("project", "filename"),
        "ranges": ("range", "state"),
        "leveldb list": ("dataset", "version"),
        "visits demo": ("visit", "scope"),
        "history demo": ("serial", "time"),
        "files": ("filename", "project"),
    }.items():
        rows = commands.done(*line.split()).stdout.splitlines()
        with_header = commands.done(*line.split(), "--header").stdout.splitlines()
        assert with_header[0].startswith("\t".join(first_columns)), line
        assert with_header[1:] == rows
        csv_header = ",".join(f'"{column}"' for column in first_columns)
        as_csv = commands.done(*line.split(), "--csv", "--header").stdout.splitlines()
        assert as_csv[0].startswith(csv_header), line
        assert len(as_csv) == len(with_header) > 1
        assert "--json goes neither" in commands.refused(*line.split(), "--json", "--csv", exit_code=USAGE)


@pytest.mark.parametrize("line", ["devindex serve folder --port {port}", "metrics --listen 127.0.0.1:{port}"])
def test_a_busy_port_is_named_with_what_to_do(commands: Commands, line: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            [*PROCESS, *line.format(port=port).split()], capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode == FAILURE
    assert done.stderr.startswith("Error: cannot listen at ")
    assert len(done.stderr.splitlines()) == 1
    assert str(port) in done.stderr
    assert "; " in done.stderr
    assert "choose another" in done.stderr
    assert "[Errno" not in done.stderr


def test_there_are_many(commands: Commands) -> None:
    assert len(OPTIONS) + len(SETTINGS) + len(PLACES) + len(AFTER_A_CRAWL) >= 45
