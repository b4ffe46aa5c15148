"""What commands about a lock refuse before anything is opened."""

from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed


@pytest.mark.parametrize(
    ("options", "named", "exit_code"),
    [
        (("--python", "4"), ["'4'", "3.12"], 2),
        (("--platform", "solaris"), ["'solaris'", "linux", "macos", "windows"], 2),
        (("--at", "-1"), ["-1"], 2),
        ((), ["r.txt"], 1),
    ],
)
def test_a_wrong_lock_or_environment_is_refused_first(
    commands: Commands, tmp_path: Path, options: tuple[str, ...], named: list[str], exit_code: int
) -> None:
    (tmp_path / "r.txt").write_text("six\n")
    for command in (("lookup", "collisions", tmp_path / "r.txt"), ("export", "gazelle", "--lock", tmp_path / "r.txt")):
        assert unnamed(commands.refused(*command, *options, exit_code=exit_code), *named) == []


def test_a_lock_that_is_not_there_is_wrong_usage(commands: Commands) -> None:
    assert "none.txt" in commands.refused("lookup", "collisions", "none.txt", exit_code=2)
