"""`pypi-assets admin inspect`: records of files on disk, and of stored extracts."""

import sys
from pathlib import Path

import pytest

from pypi_assets.cli.inspect import inspect_command
from pypi_assets.distributions import reader_pool
from pypi_assets_tests.builders import make_egg, make_sdist, make_wheel
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.distributions.containment.attempts import ATTEMPTS
from pypi_assets_tests.distributions.containment.targets import targets
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_records_of_files_are_printed(commands: Commands, tmp_path: Path) -> None:
    files = [
        make_wheel(tmp_path, "demo", "1.0", requires_dist=["a>=1"], requires_python=">=3.8"),
        make_sdist(tmp_path, "demo", "1.0"),
        make_egg(tmp_path, "demo", "1.0"),
        tmp_path / "broken-1.0-py3-none-any.whl",
    ]
    files[-1].write_bytes(b"no zip")
    records = commands.json("admin", "inspect", "--exit-zero", *files)
    assert [record["kind"] for record in records] == ["wheel", "sdist", "egg", "wheel"]
    wheel, broken = records[0], records[-1]
    assert {key: wheel[key] for key in ("filename", "project", "version", "yanked", "requires_dist", "error")} == {
        "filename": files[0].name,
        "project": "demo",
        "version": "1.0",
        "yanked": False,
        "requires_dist": ["a>=1"],
        "error": None,
    }
    assert (wheel["requires_python"], wheel["modules"], len(wheel["sha256"])) == (">=3.8", ["demo"], 64)
    assert broken["error"]["kind"] == "corrupt archive"
    assert unnamed(commands.done("admin", "inspect", "--exit-zero", files[-1]).stdout, "corrupt archive") == []


def test_entry_points_are_grouped_and_omissions_described(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripts = "".join(f"run{number} = demo:main\n" for number in range(7))
    groups = "".join(f"[group.{number}]\na = demo:b\n" for number in range(11))
    wheel = make_wheel(
        tmp_path,
        "demo",
        "1.0",
        files={"demo.py": "", "my-app/x.py": "", "my-app/y.py": ""},
        entry_points=f"[console_scripts]\n{scripts}{groups}",
        extra_headers=[("Project-URL", "Home, https://example.org/")],
    )
    lines = commands.done("admin", "inspect", wheel).stdout.splitlines()
    [entry_points] = [line for line in lines if line.startswith("entry points")]
    first = "console_scripts: run0 = demo:main, run1 = demo:main, run2 = demo:main, run3 = demo:main, run4 = demo:main"
    assert unnamed(entry_points, first, "2", "--json", "group.0", "demo:b", "group.1") == []
    assert unnamed(entry_points, "group.8", "demo:b", "2") == []
    assert any(not unnamed(line, "2") for line in lines)
    assert any(not unnamed(line, "https://example.org/") for line in lines)
    [record] = commands.json("admin", "inspect", wheel)
    assert (len(record["entry_points"]["console_scripts"]), record["left_out"]) == (7, 2)
    assert len(record["entry_points"]) == 12

    one = make_wheel(tmp_path, "one", "1.0", files={"my-app/x.py": "", **{f"m{i:03}.py": "" for i in range(70)}})
    shown = commands.done("admin", "inspect", one).stdout
    assert unnamed(shown, "1") == []
    assert "m069" in shown
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    inspect_command.main([str(one)], standalone_mode=False)
    on_terminal = capsys.readouterr().out
    assert unnamed(on_terminal, "m059", "10", "--json") == []
    assert "m060" not in on_terminal


def test_file_with_an_error_exits_with_1(commands: Commands, tmp_path: Path) -> None:
    good, broken = make_wheel(tmp_path, "demo", "1.0"), tmp_path / "broken-1.0-py3-none-any.whl"
    broken.write_bytes(b"no zip")
    assert commands.done("admin", "inspect", good).stderr == ""
    for options in ((), ("--json",)):
        result = commands.run("admin", "inspect", broken, good, *options)
        assert result.exit_code == 1
        assert unnamed(result.stderr, "1", "(broken-1.0-py3-none-any.whl)") == []
        assert good.name in result.stdout
    assert commands.done("admin", "inspect", broken, good, "--exit-zero").stderr == result.stderr


def test_unreadable_file_always_exits_with_1(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pypi_assets.distributions.local_files.read_local", refuse)
    result = commands.run("admin", "inspect", wheel, "--exit-zero", "--json")
    assert (result.exit_code, result.stdout) == (1, "[]\n")
    assert unnamed(result.stderr, wheel) == []


def test_missing_file_is_a_usage_error(commands: Commands, tmp_path: Path) -> None:
    commands.refused("admin", "inspect", tmp_path / "none.whl", exit_code=2)


def test_control_characters_of_a_file_are_not_printed(commands: Commands, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0", summary="x", requires_dist=["evil\x1b[2Jname ; broken"])
    shown = commands.done("admin", "inspect", wheel).stdout
    assert "\x1b" not in shown
    assert "evil" in shown


def test_stored_extracts_are_read_without_the_index(
    commands: Commands, index: ServedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = index.wheel("demo", "1.0", requires_dist=["a>=1"])
    commands.done("crawl", "full")
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", "https://index.example.org/simple/")  # which requires a contact
    [record] = commands.json("admin", "inspect", "--from-extract", wheel)
    assert (record["requires_dist"], record["modules"], record["of_project"]) == (["a>=1"], ["demo_module"], "demo")
    assert record["offset"] > 0
    assert 0 < record["extract_bytes"] < 4_000
    shown = commands.done("admin", "inspect", "--from-extract", wheel, "--project", "demo").stdout
    assert record["pack"] in shown
    broken = index.raw("broken-1.0-py3-none-any.whl", b"no zip")
    monkeypatch.setenv("PYPI_ASSETS_INDEX_URL", index.url)
    commands.done("crawl", "incremental")
    assert commands.run("admin", "inspect", "--from-extract", broken).exit_code == 1
    assert unnamed(commands.refused("admin", "inspect", "--from-extract", "demo-2.0.tar.gz"), "demo-2.0.tar.gz") == []
    assert (
        unnamed(commands.refused("admin", "inspect", wheel, "--project", "demo", exit_code=2), "--from-extract") == []
    )


@pytest.mark.nightly
def test_records_are_compared_with_pip(commands: Commands, tmp_path: Path) -> None:
    files = [make_wheel(tmp_path, "demo", "1.0"), make_sdist(tmp_path, "demo", "1.0")]
    rows = commands.json("admin", "inspect", "--against-pip", *files)
    assert [(row["filename"], row["refusal"], row["differences"]) for row in rows] == [
        (file.name, None, []) for file in files
    ]
    assert files[1].name in commands.done("admin", "inspect", "--against-pip", files[1]).stdout
    files[1].write_bytes(b"no tar")
    assert files[1].name in commands.done("admin", "inspect", "--against-pip", files[1]).stdout
    [row] = commands.json("admin", "inspect", "--against-pip", files[1])
    assert row["refusal"] is not None


@pytest.fixture
def misbehaving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make readers misbehave as the names of files demand."""
    monkeypatch.setattr(reader_pool, "READER_PROGRAM", "pypi_assets_tests.distributions.misbehaving_reader")


@pytest.mark.skipif(sys.platform != "linux", reason="the containment layers require Linux")
@pytest.mark.usefixtures("misbehaving")
def test_file_that_takes_over_its_reader_is_contained(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path, "attempts", "1.0")
    with targets() as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(reader_pool, "INHERITED", reader_pool.INHERITED | variables.keys())
        monkeypatch.setenv("PYPI_ASSETS_CONTAINMENT", "required")
        [record] = commands.json("admin", "inspect", "--exit-zero", wheel)
        assert record["notes"] == [f"{len(ATTEMPTS)} attempts"]
        assert commands.json("admin", "inspect", "--against-pip", "--exit-zero", wheel)[0]["differences"] != []
        place = Path(variables["TARGET_FOLDER"])
        assert sorted(path.name for path in place.iterdir()) == ["deleted", "file", "old", "socket"]


@pytest.mark.nightly
@pytest.mark.usefixtures("misbehaving")
def test_file_that_crashes_its_reader_has_one_error(commands: Commands, tmp_path: Path) -> None:
    files = [make_wheel(tmp_path, name, "1.0") for name in ("crash", "demo")]
    result = commands.run("admin", "inspect", *files)
    assert result.exit_code == 1
    assert unnamed(result.stdout, "SIGSEGV") == []
    assert unnamed(result.stderr, "1", "crash-1.0-py3-none-any.whl") == []
    assert unnamed(result.stdout, "demo") == []
    assert "SIGSEGV" not in commands.run("admin", "inspect", "--against-pip", files[1]).stdout


@pytest.mark.usefixtures("misbehaving")
def test_setting_decides_if_a_containment_layer_is_missing(
    commands: Commands, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = make_wheel(tmp_path, "demo", "1.0")
    monkeypatch.setenv("LACKING_LAYER", "seccomp")
    monkeypatch.setattr(reader_pool, "INHERITED", reader_pool.INHERITED | {"LACKING_LAYER"})
    assert commands.done("admin", "inspect", wheel).stdout
    monkeypatch.setenv("PYPI_ASSETS_CONTAINMENT", "required")
    for options in ((), ("--against-pip",)):
        assert "CONTAINMENT=required" in commands.refused("admin", "inspect", wheel, *options)
