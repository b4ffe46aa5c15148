"""Answers from the newest published versions: `open_latest(dataset)` opens them. docs/lookup.md shows how."""

from pypi_assets.leveldbs.format.errors import LeveldbDamagedError, LeveldbError, NotBuiltYetError, NoVersionError
from pypi_assets.lookup.answers import Answer, Stream
from pypi_assets.lookup.commands_reader import CommandResult, CommandsReader
from pypi_assets.lookup.depgraph_reader import Dependent, DepgraphReader, Distribution, TransitiveDependent
from pypi_assets.lookup.errors import LookupNameError
from pypi_assets.lookup.hashes_reader import HashesReader, HashResult, KnownHashResult
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import ModuleResult, ModulesReader
from pypi_assets.lookup.providers import Provider
from pypi_assets.lookup.simple_reader import PageFileResult, SimpleReader

__all__ = [
    "Answer",
    "CommandResult",
    "CommandsReader",
    "Dependent",
    "DepgraphReader",
    "Distribution",
    "HashResult",
    "HashesReader",
    "KnownHashResult",
    "LeveldbDamagedError",
    "LeveldbError",
    "LookupNameError",
    "ModuleResult",
    "ModulesReader",
    "NoVersionError",
    "NotBuiltYetError",
    "PageFileResult",
    "Provider",
    "SimpleReader",
    "Stream",
    "TransitiveDependent",
    "open_latest",
]
