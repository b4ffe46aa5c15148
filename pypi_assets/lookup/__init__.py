"""Answers from the newest published versions: `open_latest(dataset)` opens them. docs/lookup.md shows how."""

from pypi_assets.leveldbs.format.records import LeveldbDamagedError, LeveldbError
from pypi_assets.lookup.answers import Answer, Dependent, Distribution, ModuleResult, Stream
from pypi_assets.lookup.latest import NoVersionError, open_latest
from pypi_assets.lookup.readers import DepgraphReader, ModulesReader

__all__ = [
    "Answer",
    "Dependent",
    "DepgraphReader",
    "Distribution",
    "LeveldbDamagedError",
    "LeveldbError",
    "ModuleResult",
    "ModulesReader",
    "NoVersionError",
    "Stream",
    "open_latest",
]
