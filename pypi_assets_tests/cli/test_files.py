"""`pypi-assets files`: serials that it cannot answer for."""

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.served_index import ServedIndex


def test_a_serial_without_an_answer_is_refused_with_those_that_have_one(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    serial = index.serial
    for refused in (serial - 1, serial + 1):
        assert unnamed(commands.refused("files", "--at", refused), refused, serial) == []
