"""Answers from the newest published versions: `open_latest(dataset)` opens them. docs/lookup.md shows how."""

from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, LeveldbError, NotBuiltYetError, NoVersionError
from pypi_assets.lookup.answers import Answer, Dependent, Distribution, ModuleResult, Stream
from pypi_assets.lookup.latest import open_latest
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
    "NotBuiltYetError",
    "Stream",
    "open_latest",
]
