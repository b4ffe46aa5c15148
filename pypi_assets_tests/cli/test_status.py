"""The command shows how far each stage lags, and whether all is well."""

from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex


def test_a_young_lag_is_shown_all_the_same(commands: Commands, index: ServedIndex) -> None:
    index.wheel("demo", "1.0")
    commands.build_versions()
    index.wheel("demo", "2.0")
    shown = commands.done("status").stdout
    assert "lags the index by 2 serials" in shown
    assert "all is well" in shown
    assert ", lag the index by 2 serials" in shown
