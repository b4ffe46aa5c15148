"""The dataset `modules`: maps the name of a module to the projects and versions that provide it."""

from functools import partial

from pypi_assets.leveldbs.datasets.dataset import Dataset
from pypi_assets.leveldbs.datasets.modules.overview import encoded_overview, marks_of, module_names
from pypi_assets.leveldbs.datasets.provided_names import COLUMNS, NamingRules, change_names, key_schema

_NAMING = NamingRules(
    columns=("modules", "stubs"), names_in=module_names, marks_in=marks_of, overview_of=encoded_overview
)
MODULES = Dataset(
    name="modules",
    format=4,
    description="Which distributions provide a module: from module names to projects.",
    columns=(*COLUMNS, *_NAMING.columns, "yanked", "import_names", "project_status", "refusals"),
    change=partial(change_names, naming=_NAMING),
    reader="pypi_assets.lookup.modules_reader",
    key_schema={
        **key_schema("module"),
        "s MODULE PROJECT": "the group, for modules that stubs of the project describe",
        "o PROJECT": "facts about the project as a whole, by which the owners of a module are ranked",
    },
)
