"""Our own kinds of index pass the conformance kit, and an adapter with one fault fails the check that names it."""

import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pypi_assets.index.client import IndexClient
from pypi_assets.index.conformance import (
    ConformanceError,
    IndexConformance,
    Request,
    SiteAnswer,
    World,
    checks,
    failures,
)
from pypi_assets.index.errors import NotOnIndexError, PackageIndexError, RefusedError
from pypi_assets.index.kinds import IndexKind, IndexParts
from pypi_assets.index.models import ChangelogEvent, ChangelogRow
from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, ShownFile, ShownList, ShownPage
from pypi_assets_tests.index.adapters import ChangelogConformance, HtmlConformance, ObservedConformance
from pypi_assets_tests.index.shelf_package import imported_shelf


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ModuleType, ModuleType]]:
    with imported_shelf(tmp_path_factory.mktemp("new") / "shelf-index") as modules:
        yield modules


def suite_of(shelf: tuple[ModuleType, ModuleType], adapter: Callable[[IndexClient], Any]) -> type[IndexConformance]:
    """Return the checks of an adapter of a shelf."""

    class Suite(IndexConformance):
        kind = IndexKind("shelf", lambda parts: parts.observed(adapter(parts.client)))
        index_path = "/shelf/"

        def answer(self, world: World, request: Request) -> SiteAnswer | None:
            answer: SiteAnswer | None = shelf[1].answer(world, request)
            return answer

    return Suite


@pytest.mark.nightly
@pytest.mark.parametrize("suite", [ChangelogConformance, ObservedConformance, HtmlConformance])
def test_our_kinds_pass_all_checks(suite: type[IndexConformance]) -> None:
    assert failures(suite) == {}
    assert len(checks(suite)) >= 20


@pytest.mark.nightly
def test_example_passes_all_checks(shelf: tuple[ModuleType, ModuleType]) -> None:
    assert failures(suite_of(shelf, shelf[0].Shelf)) == {}


@pytest.mark.parametrize("name", ["test_deletions_are_followed", "test_pages_show_the_files"])
def test_our_kinds_pass_a_check(name: str) -> None:
    for suite in (ChangelogConformance, ObservedConformance, HtmlConformance):
        assert failures(suite, [name]) == {}


def fetched(url: str, login: Mapping[str, str]) -> bytes:
    """Return the answer to a request that a client of its own sends."""
    with urllib.request.urlopen(urllib.request.Request(url, headers=dict(login)), timeout=10) as answer:
        content: bytes = answer.read()
        return content


def broken_shelves(base: type) -> dict[str, tuple[type, str]]:
    """Return adapters with one fault each, and the check that names it."""

    class OnlyFirstPage(base):  # type: ignore[misc]
        def parse(self, answer: Any) -> dict[str, Any]:
            return {**super().parse(answer), "next": None}

    class EmptyForGarbage(base):  # type: ignore[misc]
        def parse(self, answer: Any) -> dict[str, Any]:
            try:
                content: dict[str, Any] = super().parse(answer)
            except RefusedError:
                return {"boxes": [], "items": [], "next": None}
            return content

    class EmptyForMissing(base):  # type: ignore[misc]
        def page(self, project: str, url: str | None, known: Any) -> ShownPage:
            try:
                page: ShownPage = super().page(project, url, known)
            except NotOnIndexError:
                return ShownPage(project)
            return page

    class UnchangedForErrors(base):  # type: ignore[misc]
        def list_of_projects(self, known: Any) -> ShownList | None:
            try:
                shown: ShownList = super().list_of_projects(known)
            except PackageIndexError:
                return None
            return shown

    class UnchangedForMissing(base):  # type: ignore[misc]
        def page(self, project: str, url: str | None, known: Any) -> ShownPage | None:
            try:
                page: ShownPage = super().page(project, url, known)
            except NotOnIndexError:
                return None
            return page

    class HashOfTheName(base):  # type: ignore[misc]
        def file(self, *arguments: Any) -> ShownFile:
            shown: ShownFile = super().file(*arguments)
            return ShownFile(replace(shown.file, sha256="0" * 64), {"sha256": "0" * 64})

    class NoYanks(base):  # type: ignore[misc]
        def file(self, *arguments: Any) -> ShownFile:
            shown: ShownFile = super().file(*arguments)
            return ShownFile(replace(shown.file, yanked=False, yanked_reason=None), shown.hashes)

    class SharedState(base):  # type: ignore[misc]
        def get(self, url: str, known: Any) -> Any:
            self.answer = super().get(url, known)
            return self.answer

        def page(self, project: str, url: str | None, known: Any) -> ShownPage | None:
            self.project = project
            page: ShownPage | None = super().page(project, url, known)
            return None if page is None else replace(page, files=super().page(self.project, None, known).files)

    class OwnClient(base):  # type: ignore[misc]
        def parse(self, answer: Any) -> dict[str, Any]:
            content: dict[str, Any] = json.loads(fetched(answer.url, {}))
            return content

    class NoHyphens(base):  # type: ignore[misc]
        def list_of_projects(self, known: Any) -> ShownList:
            shown: ShownList = super().list_of_projects(known)
            return ShownList([project for project in shown.projects if "-" not in project.name])

    class WrongUrls(base):  # type: ignore[misc]
        def file(self, *arguments: Any) -> ShownFile:
            shown: ShownFile = super().file(*arguments)
            url = (shown.file.url or "").replace("%2B", " ")
            return ShownFile(replace(shown.file, url=url), shown.hashes)

    class StaleValidators(base):  # type: ignore[misc]
        def page(self, project: str, url: str | None, known: Any) -> ShownPage | None:
            page: ShownPage | None = super().page(project, url, known)
            return page if known == NO_VALIDATORS else None

    return {
        "reads only the first page of the list": (OnlyFirstPage, "test_long_lists_and_logs_are_complete"),
        "has an empty page for an answer that it cannot read": (EmptyForGarbage, "test_unreadable_answers_are_errors"),
        "has an empty page for a missing project": (EmptyForMissing, "test_deletions_are_followed"),
        "calls each error unchanged": (UnchangedForErrors, "test_missing_login_is_an_error"),
        "calls a removed page unchanged": (UnchangedForMissing, "test_deletions_are_followed"),
        "has other hashes": (HashOfTheName, "test_hashes_are_of_the_bytes"),
        "omits yanks": (NoYanks, "test_yanks_are_shown_with_their_reasons"),
        "shares state between threads": (SharedState, "test_threads_do_not_disturb_each_other"),
        "sends requests itself": (OwnClient, "test_throttling_is_respected"),
        "omits projects with a hyphen": (NoHyphens, "test_list_has_every_project"),
        "does not quote filenames": (WrongUrls, "test_pages_show_the_files"),
        "calls a changed page unchanged": (StaleValidators, "test_overwritten_file_has_its_new_hash"),
    }


def test_broken_shelf_fails_the_check_that_names_its_fault(
    shelf: tuple[ModuleType, ModuleType], subtests: pytest.Subtests
) -> None:
    for fault, (adapter, check) in broken_shelves(shelf[0].Shelf).items():
        with subtests.test(fault):
            found = failures(suite_of(shelf, adapter), [check])
            assert list(found) == [check]
            assert isinstance(found[check], ConformanceError | PackageIndexError), found[check]


class ChangelogMutant(IndexClient):
    """A client of a changelog whose `changelog_page` and `last_serial` a fault changes."""

    fault = ""
    opened = 0

    def changelog_page(self, since: int) -> list[ChangelogRow]:
        rows = super().changelog_page(since)
        match self.fault:
            case "repeats the last event":
                return super().changelog_page(since - 1) if since else rows
            case "omits removed files":
                return [row for row in rows if not getattr(row, "action", "").startswith("remove file")]
            case "numbers events anew":
                shift = type(self).opened
                return [
                    replace(row, timestamp=row.timestamp + shift) if isinstance(row, ChangelogEvent) else row
                    for row in rows
                ]
        return rows

    def last_serial(self) -> int:
        serial = super().last_serial()
        return max(serial - 1, 0) if self.fault == "is one serial behind" else serial


def test_broken_changelog_fails_the_check_that_names_its_fault(subtests: pytest.Subtests) -> None:
    for wanted, check in (
        ("repeats the last event", "test_serials_ascend"),
        ("omits removed files", "test_deletions_are_followed"),
        ("numbers events anew", "test_events_are_never_changed"),
        ("is one serial behind", "test_serials_ascend"),
    ):

        class Mutant(ChangelogMutant):
            fault = wanted

        def opened(parts: IndexParts, kind: type[ChangelogMutant] = Mutant) -> IndexClient:
            kind.opened += 1
            parts.client.__class__ = kind
            return parts.client

        class Suite(ChangelogConformance):
            kind = IndexKind("mutant", opened)

        with subtests.test(wanted):
            found = failures(Suite, [check])
            assert list(found) == [check]
            assert isinstance(found[check], ConformanceError | PackageIndexError), found[check]


def test_documented_checks_are_all_checks() -> None:
    page = (Path(__file__).parents[2] / "docs" / "indexes.md").read_text(encoding="utf-8")
    section = page.partition("\n### Check a kind of index\n")[2].partition("\n### ")[0]
    assert sorted(re.findall(r"`(test_\w+)`", section)) == checks(IndexConformance)


def test_kit_imports_nothing_of_the_tests(tmp_path: Path) -> None:
    program = (
        "import sys, pypi_assets.index.conformance;"
        "print(*[name for name in sys.modules if name.split('.')[0] in ('pypi_assets_tests', 'pytest')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
