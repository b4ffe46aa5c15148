"""Each spelling of a project has its top-level names."""

import tomllib

from pypi_assets.export.module_owners import toml_lines, top_level_names
from pypi_assets_tests.export.pinned import USUAL

NAMES = {
    "PyYAML": ["_yaml", "yaml"],
    "google-auth": ["google"],
    "google-cloud-storage": ["google"],
    "old": ["no", "null"],
    "protobuf": ["google"],
    "pyyaml": ["_yaml", "yaml"],
    "types-PyYAML": ["yaml-stubs"],
    "types-pyyaml": ["yaml-stubs"],
    "zope-interface": ["zope"],
    "zope.interface": ["zope"],
}


def test_each_spelling_has_the_top_level_names() -> None:
    assert top_level_names(USUAL) == NAMES
    assert list(top_level_names(USUAL)) == sorted(NAMES)


def test_toml_has_the_same() -> None:
    assert tomllib.loads(toml_lines(USUAL)) == NAMES
