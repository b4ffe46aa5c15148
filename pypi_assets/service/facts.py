"""What the catalog adds to answers about a project from published datasets."""

from dataclasses import dataclass

from pypi_assets.lookup.project_answers import ProjectFacts, known_facts
from pypi_assets.service.answers import Answer, Lasting
from pypi_assets.service.service import Service


@dataclass
class CatalogFacts:
    """Returns what the catalog knows of a project as of a serial; None if there is no catalog, or it does not answer.

    `marked` then limits how long caches keep the answer that lacks it.
    """

    service: Service
    serial: int
    _has_failed: bool = False
    _is_missing: bool = False

    def __call__(self, name: str) -> ProjectFacts | None:
        """Return the facts about a project."""
        found = self._facts(name)
        self._is_missing = found is None
        return found

    def marked(self, answer: Answer) -> Answer:
        """Return the answer, which is kept as long as what was added to it holds."""
        if self._is_missing:
            answer.set_id = None  # the catalog may come later, and the datasets stay the same
        if self._has_failed:
            answer.lasting = Lasting.NO_STORE
        return answer

    def _facts(self, name: str) -> ProjectFacts | None:
        catalog = self.service.catalog
        found = None if catalog is None else known_facts(catalog, self.serial, name)
        self._has_failed = found is None and self.service.has_catalog
        return found
