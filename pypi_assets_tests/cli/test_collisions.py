"""`pypi-assets lookup collisions`: from an index to modules that two distributions have."""

from pathlib import Path

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex

SHARED = {"shared/__init__.py": "", "shared/part.py": ""}


def test_collisions_are_found_in_what_is_published_and_at_a_serial(
    commands: Commands, index: ServedIndex, tmp_path: Path
) -> None:
    index.wheel("one", "1.0", files=SHARED)
    index.wheel("two", "1.0", files=SHARED, requires_dist=["one"])
    commands.build_versions()
    serial = index.serial
    lock = tmp_path / "requirements.txt"
    lock.write_text("one==1.0\ntwo==1.0\ngone==1.0\n")
    done = commands.run("lookup", "collisions", lock, "--check")
    assert done.exit_code == 1
    assert done.stdout == "shared.part\tone 1.0, two 1.0\ttwo\n"
    assert unnamed(done.stderr, "gone==1.0") == []
    assert unnamed(done.stderr, "3", "2", serial) == []
    found = commands.json("lookup", "collisions", lock, "--python", "3.12", "--platform", "linux")
    assert found["shared_packages"] == [{"package": "shared", "projects": ["one", "two"]}]
    assert [one["kind"] for one in found["remarks"]] == ["unknown"]
    past = commands.json("lookup", "collisions", lock, "--at", serial)
    assert past.pop("epoch") <= serial
    assert past == {**found, "python": None, "platform": None}
    lock.write_text("one==1.0\n")
    done = commands.done("lookup", "collisions", lock, "--check")
    assert (done.stdout, bool(done.stderr)) == ("", True)
