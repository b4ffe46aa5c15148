"""What commands about a lock refuse before anything is opened."""

from pathlib import Path

import pytest

from pypi_assets_tests.cli.commands import Commands


@pytest.mark.parametrize(
    ("options", "problem", "exit_code"),
    [
        (("--python", "4"), "'4' is no version of Python: write 3.12 or 3.12.4", 2),
        (("--platform", "solaris"), "'solaris' is no platform: write linux, macos, windows", 2),
        (("--at-serial", "-1"), "-1 is not in the range", 2),
        ((), "pins no version", 1),
    ],
)
def test_a_wrong_lock_or_environment_is_refused_first(
    commands: Commands, tmp_path: Path, options: tuple[str, ...], problem: str, exit_code: int
) -> None:
    (tmp_path / "r.txt").write_text("six\n")
    for command in (("collisions", tmp_path / "r.txt"), ("export", "gazelle", "--lock", tmp_path / "r.txt")):
        assert problem in commands.refused(*command, *options, exit_code=exit_code)


def test_a_lock_that_is_not_there_is_wrong_usage(commands: Commands) -> None:
    assert "does not exist" in commands.refused("collisions", "none.txt", exit_code=2)
