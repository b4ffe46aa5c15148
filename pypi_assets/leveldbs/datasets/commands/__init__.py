"""The dataset `commands`: from a console script to the projects and versions that install it."""

from functools import partial

from pypi_assets.leveldbs.datasets.commands.entry_points import command_names
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.provided_names import COLUMNS, change_names, key_schema

COMMANDS = Dataset(
    name="commands",
    format=1,
    description="Which distributions install a command: from console scripts to projects.",
    columns=(*COLUMNS, "console_scripts"),
    change=partial(change_names, column="console_scripts", names_in=command_names),
    reader="pypi_assets.lookup.commands_reader",
    key_schema=key_schema("command"),
)
