"""Exhausted work: visits and reads that have no attempt left after transient errors."""

from dataclasses import dataclass

from sqlalchemy import Connection

from pypi_assets.catalog.reports.catalog_totals import about_known
from pypi_assets.catalog.reports.failures import count_failures


@dataclass(frozen=True, slots=True)
class ExhaustedWork:
    """The current exhausted work: reads by the kind of error, and visits. `known` is roughly how many distributions and
    projects were ever known."""

    kinds: dict[str, int]
    known: int

    @property
    def count(self) -> int:
        return sum(self.kinds.values())

    @property
    def percent(self) -> float:
        """The share of all that was ever known, in per cent."""
        return 100 * self.count / max(self.known, 1)


def read_exhausted(connection: Connection) -> ExhaustedWork:
    """The current exhausted work; quick on any catalog."""
    return ExhaustedWork(count_failures(connection, only_exhausted=True), about_known(connection))
