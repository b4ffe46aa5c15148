"""`pypi-assets export`: each format, from an index to the file."""

from pathlib import Path

from pypi_assets.export.formats import FORMATS
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_all_top_level_names_are_written(commands: Commands, index: ServedIndex, tmp_path: Path) -> None:
    index.wheel("demo", "1.0", files={"demo/__init__.py": "", "demo_tests/__init__.py": ""})
    commands.build_versions()
    result = commands.done("export", "owners", "--top-level", tmp_path / "owners.jsonl")
    lines = (tmp_path / "owners.jsonl").read_text().splitlines()
    assert len(lines) == 3
    assert unnamed(result.stderr, "owners.jsonl", 2, (tmp_path / "owners.jsonl").stat().st_size) == []
    assert "--top-level" in commands.refused("export", "owners", tmp_path / "owners.jsonl", exit_code=2)


def test_formats_are_printed_without_notes_and_missing_parts_are_reported(
    commands: Commands, index: ServedIndex, tmp_path: Path
) -> None:
    index.wheel("PyYAML", "6.0", files={"yaml/__init__.py": "", "yaml/nodes.py": ""})
    commands.build_versions()
    lock = tmp_path / "requirements.txt"
    lock.write_text("pyyaml==6.0\n-e .\n")
    for name in FORMATS:
        done = commands.done("export", name, "--lock", lock)
        assert unnamed(done.stdout.splitlines()[0], f"pypi-assets export {name} --lock requirements.txt") == []
        assert unnamed(done.stderr, 2) == [] or "-e ." in done.stderr
        past = commands.done("export", name, "--lock", lock, "--at", index.serial)
        assert past.stdout == done.stdout
    assert "\n    yaml: " in commands.done("export", "gazelle", "--lock", lock).stdout
