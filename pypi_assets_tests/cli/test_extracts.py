"""`pypi-assets admin extracts`: packs that are in use stay."""

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_a_pack_in_use_is_not_deleted(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.done("crawl", "full")
    assert unnamed(commands.done("admin", "extracts", "clean").stdout, "0", "1") == []
    assert commands.json("admin", "extracts", "clean", "--dry-run") == {"packs": 1, "deleted": [], "size": 0}
