"""Answers of any exact serial: a snapshot that reads the catalog. The database is imported with the first answer."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pypi_assets.lookup.answers import Answer, Result
from pypi_assets.lookup.catalog_hints import past_module_hints
from pypi_assets.lookup.commands_reader import CommandResult
from pypi_assets.lookup.modules_reader import ModuleResult, module_answer
from pypi_assets.questions.snapshot import After, Found, OtherSnapshotError

if TYPE_CHECKING:
    from pypi_assets.catalog.database import Catalog

_NEWEST = "ask for the newest answer, which the LevelDB versions have: leave the moment out"
_NO_COMMANDS = (
    f"the catalog has no index of commands, so it is not known who installed one; {_NEWEST}, or look up a version of a"
    " project at that serial, which lists its commands"
)


@dataclass(frozen=True, slots=True)
class CatalogSnapshot:
    """The index as it was at `serial`, at which the catalog is exact."""

    catalog: "Catalog"
    serial: int

    def providers(self, module: str, /) -> Found[ModuleResult]:
        """See `Snapshot.providers`."""
        from pypi_assets.catalog.publications.dump_rows import providing_releases

        return self._answer(module_answer(self.serial, module, providing_releases(self.catalog, self.serial, module)))

    def few_providers(self, _module: str, _most: int, /) -> None:
        """See `Snapshot.few_providers`: no read of the catalog is quick."""

    def modules(self, _beginning: str, _after: After, /) -> Found[ModuleResult]:
        """Raise OtherSnapshotError: the catalog finds whole names."""
        raise OtherSnapshotError(f"the catalog finds modules by their whole name alone; {_NEWEST}")

    def module_hints(self, module: str, /) -> Iterator[str]:
        """See `Snapshot.module_hints`."""
        return past_module_hints(self.catalog, module)

    def installers(self, _command: str, /) -> Found[CommandResult]:
        """Raise OtherSnapshotError: the catalog has no index of commands."""
        raise OtherSnapshotError(_NO_COMMANDS)

    def commands(self, _beginning: str, _after: After, /) -> Found[CommandResult]:
        """Raise OtherSnapshotError: the catalog has no index of commands."""
        raise OtherSnapshotError(_NO_COMMANDS)

    def command_hints(self, _command: str, /) -> Iterator[str]:
        """See `Snapshot.command_hints`: there are none."""
        return iter(())

    def _answer(self, found: Answer[Result]) -> Answer[Result]:
        """Return the answer with how many projects are followed, unless all of the index is."""
        from pypi_assets.catalog.observed.followed import count_answered

        with self.catalog.read() as connection:
            return replace(found, followed_projects=count_answered(connection, self.serial))
