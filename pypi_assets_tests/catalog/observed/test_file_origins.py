"""The origin of files is stored once, and the first pages are those that were visited first."""

from threading import Barrier, Thread

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.index_state import first_file_urls, known_file_origin, store_file_origin
from pypi_assets.catalog.observed.projects import Selection
from pypi_assets.catalog.tables import distributions, projects, releases, visits
from pypi_assets.catalog.work.full_crawls import open_crawl


def opened(catalog: Catalog) -> None:
    open_crawl(catalog, 1, 1, "https://index.example.org/simple/", Selection())


def test_before_the_first_crawl_nothing_is_known_or_stored(catalog: Catalog) -> None:
    with catalog.write() as connection:
        assert not store_file_origin(connection, "https://files.example.org")
        assert known_file_origin(connection) is None
        assert first_file_urls(connection, 20) == []


def test_the_first_one_stays(catalog: Catalog) -> None:
    opened(catalog)
    with catalog.write() as connection:
        assert known_file_origin(connection) is None
        assert store_file_origin(connection, "")
        assert not store_file_origin(connection, "https://files.example.org")
        assert known_file_origin(connection) == ""


def test_of_several_at_once_one_stores_it(catalog: Catalog) -> None:
    opened(catalog)
    barrier, stored = Barrier(6), list[str]()

    def store(origin: str) -> None:
        barrier.wait()
        with catalog.write() as connection:
            if store_file_origin(connection, origin):
                stored.append(origin)

    threads = [Thread(target=store, args=(f"https://f{number}.example.org",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with catalog.read() as connection:
        assert [known_file_origin(connection)] == stored


def test_the_first_pages_are_those_visited_first_that_have_files(catalog: Catalog) -> None:
    with catalog.write() as connection:
        for number in (1, 2, 3, 4):
            row = {"id": number, "normalized": f"p{number}", "name": f"p{number}", "bucket": 0, "shard": 0}
            connection.execute(projects.insert().values(known_since=0, **row))
            connection.execute(releases.insert().values(id=number, project_id=number, version="1"))
        for visit_id, project_id, visit in ((1, 4, 1), (2, 3, 1), (3, 4, 2), (4, 2, 1), (5, 1, 1)):
            row = {"id": visit_id, "project_id": project_id, "visit": visit, "kind": "full", "workload": "crawl:1"}
            connection.execute(visits.insert().values(started_at=0, **row))
        for file, project_id, url in ((1, 1, "u1"), (2, 2, "u2"), (3, 3, None), (4, 4, "u4"), (5, 4, "v4")):
            row = {"id": file, "project_id": project_id, "release_id": project_id, "filename": f"f{file}", "url": url}
            connection.execute(distributions.insert().values(kind="wheel", **row))
    with catalog.read() as connection:
        assert first_file_urls(connection, 1) == ["u4", "v4"]
        assert first_file_urls(connection, 2) == ["u2", "u4", "v4"]
        assert first_file_urls(connection, 20) == ["u1", "u2", "u4", "v4"]
