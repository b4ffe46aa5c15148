"""The dataset `commands`: maps a console script to the projects and versions that install it."""

from functools import partial

from pypi_assets.leveldbs.datasets.commands.entry_points import command_names
from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.provided_names import COLUMNS, NamingRules, change_names, key_schema

_NAMING = NamingRules(columns=("console_scripts",), names_in=command_names)
COMMANDS = Dataset(
    name="commands",
    format=1,
    description="Which distributions install a command: from console scripts to projects.",
    columns=(*COLUMNS, *_NAMING.columns),
    change=partial(change_names, naming=_NAMING),
    reader="pypi_assets.lookup.commands_reader",
    key_schema=key_schema("command"),
)
