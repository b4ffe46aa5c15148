"""An index without serials on which a file is overwritten, and a catalog that follows it."""

from pathlib import Path

from pypi_assets.catalog.database import Catalog
from pypi_assets.components import crawler_from, index_from, storage_from
from pypi_assets.crawl.full_crawl import crawl_full
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.settings import load_settings
from pypi_assets_tests.served_index import shared_readers
from pypi_assets_tests.served_pages import served_pages


def follow_overwritten(catalog: Catalog, folder: Path) -> str:
    """Follow the index while a file is overwritten twice, with a yank in between, and return the file's name."""
    with served_pages(folder / "served") as index:
        name = index.wheel("demo", "1.0", files={"first.py": ""}, requires_dist=["one"])
        index.sdist("demo", "1.0")
        settings = load_settings(
            home=folder, request_attempts=1, lister="pages", index_url=index.url, poll_shortest_s=0, poll_confirm_s=0
        )
        with index_from(settings, catalog) as client:
            crawler = crawler_from(settings, client, catalog, storage_from(settings), shared_readers())
            crawl_full(crawler)
            index.wheel("demo", "1.0", files={"second.py": ""}, requires_dist=["two"])
            crawl_incremental(crawler)
            index.projects["demo"][name].yanked = "broken"
            crawl_incremental(crawler)
            index.wheel("demo", "1.0", files={"third.py": ""}, requires_dist=["three"])
            crawl_incremental(crawler)
            index.wheel("demo", "2.0")
            crawl_incremental(crawler)
    return name
