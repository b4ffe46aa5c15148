"""URLs of files are those of the page of their project, as it is published and at a serial."""

from pypi_assets.cli.moments import catalog_at
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.simple_reader import SimpleReader
from pypi_assets.resolve.pages import PastPages, PublishedPages
from pypi_assets_tests.cli.commands import Commands
from pypi_assets_tests.served_index import ServedIndex


def test_files_have_their_urls_by_name(commands: Commands, index: ServedIndex) -> None:
    wheel = index.wheel("demo", "1.0")
    commands.build_versions()
    with open_latest(SimpleReader) as simple, catalog_at(None) as (catalog, serial):
        for pages in (PublishedPages(simple), PastPages(catalog, serial)):
            [(name, file)] = pages.files("demo").items()
            assert name == file.filename == wheel
            assert file.url is not None
            assert file.url.startswith(index.url.removesuffix("simple/"))
            assert pages.files("nothing") == {}
