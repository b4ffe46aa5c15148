"""Projects that the roots of a scope lead to are followed, and no other project is requested."""

import pytest
from sqlalchemy import select
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.ledger.range_ledger import complete_serial
from pypi_assets.catalog.tables import followed_intervals, projects, scope_projects
from pypi_assets.crawl.crawler import Crawler
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.scope_crawl import run_scope, start_scope
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.root_files import named_roots
from pypi_assets_tests.served_index import ServedIndex, live


def create(crawler: Crawler, *roots: str, name: str = "mine", **options: object) -> None:
    start_scope(crawler, ScopePlan(name, named_roots(roots).extras, **options))


def members(catalog: Catalog, name: str = "mine") -> dict[str, int]:
    """Return the projects that scopes lead to, with their depths."""
    with catalog.read() as connection:
        rows = connection.execute(
            select(projects.c.normalized, scope_projects.c.depth)
            .join(scope_projects, scope_projects.c.project_id == projects.c.id)
            .where(~scope_projects.c.is_beyond)
        )
        return {name: depth for name, depth in rows}


def test_only_requirements_of_roots_are_followed(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("app", "1.0", requires_dist=["library>=1", "tool ; extra == 'dev'"])
    index.wheel("library", "1.0", requires_dist=["base"])
    index.wheel("base", "1.0")
    index.wheel("tool", "1.0")
    index.wheel("other", "1.0", requires_dist=["app"])
    crawler = index.crawler(catalog)
    create(crawler, "app")
    result = run_scope(crawler, "mine")
    assert result.is_complete
    assert members(catalog) == {"app": 0, "library": 1, "base": 2}
    assert {name for name, _ in live(catalog)} == {
        f"{name}-1.0-py3-none-any.whl" for name in ("app", "library", "base")
    }
    with catalog.read() as connection:
        assert complete_serial(connection) == index.serial


@pytest.mark.nightly
def test_upload_with_new_requirement_adds_the_project_in_its_range(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("app", "1.0")
    index.wheel("library", "1.0", requires_dist=["base"])
    index.wheel("base", "1.0")
    crawler = index.crawler(catalog)
    create(crawler, "app")
    run_scope(crawler, "mine")
    assert members(catalog) == {"app": 0}
    index.wheel("app", "2.0", requires_dist=["library"])
    crawl_incremental(crawler)
    assert members(catalog) == {"app": 0, "library": 1, "base": 2}
    assert {name for name, _ in live(catalog)} == {
        "app-1.0-py3-none-any.whl",
        "app-2.0-py3-none-any.whl",
        "library-1.0-py3-none-any.whl",
        "base-1.0-py3-none-any.whl",
    }
    with catalog.read() as connection:
        assert connection.scalars(select(followed_intervals.c.exact_from)).all().count(None) == 0


@pytest.mark.nightly
def test_full_crawl_follows_all_projects_from_then_on(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("app", "1.0", requires_dist=["library"])
    index.wheel("library", "1.0")
    index.wheel("other", "1.0")
    crawler = index.crawler(catalog)
    create(crawler, "app")
    run_scope(crawler, "mine")
    assert len(live(catalog)) == 2
    crawl_full(crawler)
    assert live(catalog) == index.shown()
    index.wheel("other", "2.0", requires_dist=["app"])
    index.wheel("app", "2.0", requires_dist=["other"])
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()
    assert members(catalog) == {"app": 0, "library": 1, "other": 1}
    with catalog.read() as connection:
        assert complete_serial(connection) == index.serial


@pytest.mark.nightly
def test_project_missing_from_the_index_is_entered_and_delays_nothing(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("app", "1.0", requires_dist=["missing", "app"])
    crawler = index.crawler(catalog, retry_deadline_s=3600.0)
    create(crawler, "app", "nowhere")
    assert run_scope(crawler, "mine").is_complete
    assert members(catalog) == {"app": 0, "nowhere": 0, "missing": 1}
    index.wheel("missing", "1.0", requires_dist=["nowhere"])
    crawl_incremental(crawler)
    assert {name for name, _ in live(catalog)} == {"app-1.0-py3-none-any.whl", "missing-1.0-py3-none-any.whl"}


def test_one_file_per_kind_of_a_large_release_is_read_first(index: ServedIndex, catalog: Catalog) -> None:
    for python in range(30, 40):
        index.wheel("app", "1.0", requires_dist=["library"], tag=f"cp{python}-none-any")
    index.sdist("app", "1.0")
    index.wheel("library", "1.0")
    requested: list[str] = []
    index.faults = lambda request: requested.append(request.url.path)
    crawler = index.crawler(catalog, connections=1)
    create(crawler, "app")
    run_scope(crawler, "mine")
    pages = [number for number, path in enumerate(requested) if path == "/simple/library/"]
    before = [path for path in requested[: pages[0]] if path.endswith((".whl", ".tar.gz"))]
    assert len(set(before)) == 2
    assert live(catalog) == index.shown()


@pytest.mark.nightly
def test_404_before_an_upload_is_not_an_absence_after_it(index: ServedIndex, catalog: Catalog) -> None:
    """The project was unknown until its page was missing a second time. Then it gets two uploads before its page is
    seen.
    """
    index.wheel("app", "1.0", requires_dist=["soon"])
    missing, uploaded = [], []

    def answer(request: Request) -> Response | None:
        if "/simple/soon/" not in request.url.path or len(missing) == 2:
            return None
        missing.append(request)
        if len(missing) == 2:
            uploaded.append((index.wheel("soon", "1.0"), index.serial))
        return PlainTextResponse("", 404)

    index.faults = answer
    crawler = index.crawler(catalog, retry_deadline_s=60)
    create(crawler, "app")
    run_scope(crawler, "mine")
    assert len(missing) == 2
    index.wheel("soon", "2.0")
    crawl_incremental(crawler)
    assert live(catalog) == index.shown()
    [(first, serial)] = uploaded
    assert (first, False) in live(catalog, serial)
