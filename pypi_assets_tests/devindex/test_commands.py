"""The devindex command. It runs in a separate process if signals and exit codes matter."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from click.testing import CliRunner, Result

from pypi_assets.devindex.commands import devindex
from pypi_assets.devindex.history import History
from pypi_assets_tests.builders import make_sdist, make_wheel
from pypi_assets_tests.naming import mentions

CODE = "from pypi_assets.devindex.commands import devindex; devindex()"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "index"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(devindex, [str(argument) for argument in arguments])


def test_changes_have_a_command_each(folder: Path, tmp_path: Path) -> None:
    wheel, sdist = make_wheel(tmp_path, "demo", "1.0"), make_sdist(tmp_path, "demo", "1.0")
    commands = [
        (("add", folder, wheel, sdist), f"added {wheel.name} (serial 4)\nadded {sdist.name} (serial 5)\n"),
        (("yank", folder, "demo", "1.0", "--reason", "broken"), "yanked demo 1.0 (serial 6)\n"),
        (("unyank", folder, "demo", "1.0"), "unyanked demo 1.0 (serial 7)\n"),
        (("quarantine", folder, "demo"), "quarantined demo (serial 8)\n"),
        (("unquarantine", folder, "demo"), "cleared the quarantine of demo (serial 9)\n"),
        (("quarantine-release", folder, "demo", "1.0"), "quarantined demo 1.0 (serial 10)\n"),
        (("unquarantine-release", folder, "demo", "1.0"), "cleared the quarantine of demo 1.0 (serial 11)\n"),
        (("archive", folder, "demo"), "archived demo (serial 11)\n"),
        (("unarchive", folder, "demo"), "unarchived demo (serial 11)\n"),
        (("remove-file", folder, sdist.name), f"removed {sdist.name} (serial 12)\n"),
        (("remove-release", folder, "demo", "1.0"), "removed demo 1.0 (serial 13)\n"),
        (("remove-project", folder, "demo"), "removed demo (serial 14)\n"),
    ]
    for arguments, output in commands:
        result = run(*arguments)
        assert (result.exit_code, result.output) == (0, output)
    assert [event.action for event in History(folder).state().changelog][5:] == [
        "yank release",
        "unyank release",
        "project quarantined",
        "project quarantine cleared",
        "release quarantined",
        "release quarantine cleared",
        f"remove file {sdist.name}",
        "remove release",
        "remove project",
    ]
    assert {arguments[0] for arguments, _ in commands} | {"serve"} == set(devindex.commands)


def test_every_command_has_help_with_an_example() -> None:
    for name in devindex.commands:
        result = run(name, "--help")
        assert result.exit_code == 0
        assert f"Example: pypi-assets devindex {name} my-index" in result.output


def test_project_and_version_can_be_given(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.zip").write_bytes(b"odd")
    assert run("add", folder, tmp_path / "odd.zip").exit_code == 1
    assert run("add", folder, tmp_path / "odd.zip", "--project", "demo", "--version", "3").exit_code == 0
    assert History(folder).state().changelog[3].version == "3"


def test_rejection_is_one_line_and_exit_code_1(folder: Path) -> None:
    result = run("yank", folder, "demo", "1.0")
    assert (result.exit_code, result.output) == (1, "Error: no project demo on the index; check its name\n")


@pytest.mark.parametrize("arguments", [("yank", "folder", "demo"), ("add", "folder", "no-such-file"), ("no-such",)])
def test_usage_error_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    assert run(*arguments).exit_code == 2


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_its_url_and_stops_on_a_signal(folder: Path, tmp_path: Path, number: signal.Signals) -> None:
    History(folder).add(make_wheel(tmp_path, "demo", "1.0"))
    command = [sys.executable, "-W", "error", "-c", CODE, "serve", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        with requests.Session() as session:
            assert session.get(f"{url}demo/", timeout=60).status_code == 200
            process.send_signal(number)
            output, errors = process.communicate(timeout=120)
    assert (process.returncode, output, errors) == (0, "", "")


def test_requests_are_logged_on_demand(folder: Path) -> None:
    command = [sys.executable, "-c", CODE, "serve", str(folder), "--log-requests"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        requests.get(process.stdout.readline().strip(), timeout=60)
        process.terminate()
        output, _ = process.communicate(timeout=120)
    assert '"GET /simple/ HTTP/1.1" 200' in output


def test_serve_with_a_fault_plan(folder: Path, tmp_path: Path) -> None:
    History(folder).add(make_wheel(tmp_path, "demo", "1.0"))
    plan = tmp_path / "plan.toml"
    plan.write_text(
        '[[fault]]\nkind = "status"\non = ["page"]\nrequests = [1]\n\n[[fault]]\nkind = "reset"\nevery = 3\n'
    )
    command = [sys.executable, "-W", "error", "-c", CODE, "serve", str(folder), "--faults", str(plan)]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
        requests.Session() as session,
    ):
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert [session.get(f"{url}demo/", timeout=60).status_code for _ in range(2)] == [503, 200]
        with pytest.raises(requests.ConnectionError):
            session.get(f"{url}demo/", timeout=60)
        process.terminate()
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output, errors) == (0, "", "")


def test_serve_with_invalid_plan_is_exit_code_1(folder: Path, tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[fault]]\nkind = "status"\nrates = 0.1\n')
    result = run("serve", folder, "--faults", plan)
    assert result.exit_code == 1
    assert mentions(result.output, plan, "fault 1", "status", "rates")


def test_serve_on_impossible_folder_is_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    result = run("serve", tmp_path / "file" / "index")
    assert result.exit_code == 1
    assert "Not a directory" in result.output


def test_serve_on_port_in_use_is_exit_code_1(folder: Path) -> None:
    command = [sys.executable, "-c", CODE, "serve", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        port = process.stdout.readline().rsplit(":", 1)[1].split("/")[0]
        result = run("serve", folder, "--port", port)
        process.terminate()
        process.communicate(timeout=120)
    assert result.exit_code == 1
    assert "in use" in result.output


def test_help_list_has_whole_sentences() -> None:
    result = CliRunner().invoke(devindex, ["--help"], terminal_width=78)
    _, listed = result.stdout.split("Commands:\n")
    assert len(listed.splitlines()) == len(devindex.commands)
    assert "..." not in listed
