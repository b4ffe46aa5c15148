"""An index whose changelog, list and pages have broken entries, for tests of crawls."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pypi_assets.index.changelog import read_events
from pypi_assets.index.models import BrokenEntry, ChangelogRow, IndexFile, ListedProject, ProjectPage
from pypi_assets_tests.crawl.followers import SilentIndex


@dataclass
class OddIndex(SilentIndex):
    """An index with broken entries: `rows` replaces changelog rows by serial, `unlisted` adds broken entries to the
    list, and files in `broken_files` have a broken entry on their page.
    """

    rows: dict[int, object] = field(default_factory=dict)
    unlisted: list[BrokenEntry] = field(default_factory=list)
    broken_files: set[str] = field(default_factory=set)

    def changelog(self, since: int, until: int) -> Iterator[list[ChangelogRow]]:
        found = [event for page in super().changelog(since, until) for event in page]
        raw = [
            self.rows.get(event.serial, [event.name, event.version, event.timestamp, event.action, event.serial])
            for event in found
        ]
        if raw:
            yield read_events(raw, since, self.changelog_url)

    @contextmanager
    def iter_listing(
        self, *, newer_than: int | None = None
    ) -> Iterator[tuple[int | None, Iterator[ListedProject | BrokenEntry]]]:
        with super().iter_listing() as (serial, listed):
            yield serial, iter([*self.unlisted, *listed])

    def project_page(self, project: str, *, etag: str | None = None) -> ProjectPage:
        page = super().project_page(project, etag=etag)
        broken = tuple(
            BrokenEntry("size is not a number of bytes", "{}", file.filename)
            for file in page.files
            if file.filename in self.broken_files
        )
        return replace(page, files=tuple(map(self._shown, page.files)), broken=broken)

    def _shown(self, file: IndexFile) -> IndexFile:
        return replace(file, url=None, sha256=None, size=None) if file.filename in self.broken_files else file
