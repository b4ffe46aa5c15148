"""Readers of published datasets. `open_latest(dataset)` opens the newest version; docs/ask.md has examples.

Names are imported on first use, so a command loads only the readers that it needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypi_assets.leveldbs.format.leveldb_errors import LeveldbDamagedError as LeveldbDamagedError
    from pypi_assets.leveldbs.format.leveldb_errors import LeveldbError as LeveldbError
    from pypi_assets.leveldbs.format.leveldb_errors import NotBuiltYetError as NotBuiltYetError
    from pypi_assets.leveldbs.format.leveldb_errors import NoVersionError as NoVersionError
    from pypi_assets.lookup.answers import Answer as Answer
    from pypi_assets.lookup.answers import LookupNameError as LookupNameError
    from pypi_assets.lookup.answers import Stream as Stream
    from pypi_assets.lookup.commands_reader import CommandResult as CommandResult
    from pypi_assets.lookup.commands_reader import CommandsReader as CommandsReader
    from pypi_assets.lookup.dependent_results import Dependent as Dependent
    from pypi_assets.lookup.dependent_results import TransitiveDependent as TransitiveDependent
    from pypi_assets.lookup.depgraph_reader import DepgraphReader as DepgraphReader
    from pypi_assets.lookup.depgraph_reader import Distribution as Distribution
    from pypi_assets.lookup.hashes_reader import HashesReader as HashesReader
    from pypi_assets.lookup.hashes_reader import HashResult as HashResult
    from pypi_assets.lookup.hashes_reader import KnownHashResult as KnownHashResult
    from pypi_assets.lookup.latest import open_latest as open_latest
    from pypi_assets.lookup.modules_reader import ModuleResult as ModuleResult
    from pypi_assets.lookup.modules_reader import ModulesReader as ModulesReader
    from pypi_assets.lookup.providers import Provider as Provider
    from pypi_assets.lookup.simple_reader import PageFileResult as PageFileResult
    from pypi_assets.lookup.simple_reader import SimpleReader as SimpleReader

_MODULES = {
    "pypi_assets.leveldbs.format.leveldb_errors": (
        "LeveldbDamagedError",
        "LeveldbError",
        "NotBuiltYetError",
        "NoVersionError",
    ),
    "pypi_assets.lookup.answers": ("Answer", "LookupNameError", "Stream"),
    "pypi_assets.lookup.commands_reader": ("CommandResult", "CommandsReader"),
    "pypi_assets.lookup.dependent_results": ("Dependent", "TransitiveDependent"),
    "pypi_assets.lookup.depgraph_reader": ("DepgraphReader", "Distribution"),
    "pypi_assets.lookup.hashes_reader": ("HashesReader", "HashResult", "KnownHashResult"),
    "pypi_assets.lookup.latest": ("open_latest",),
    "pypi_assets.lookup.modules_reader": ("ModuleResult", "ModulesReader"),
    "pypi_assets.lookup.providers": ("Provider",),
    "pypi_assets.lookup.simple_reader": ("PageFileResult", "SimpleReader"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULE_OF[name]), name)
