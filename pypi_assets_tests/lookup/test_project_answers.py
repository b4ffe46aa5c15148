"""Projects and versions: the same from published versions and from the catalog. `service/` has more of them."""

from contextlib import nullcontext

from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.published_sets import PublishedSets
from pypi_assets.questions.catalog_snapshot import CatalogSnapshot
from pypi_assets.questions.published_snapshot import PublishedSnapshot
from pypi_assets_tests.lookup.publisher import Publisher


def test_both_sources_agree_but_for_what_only_the_catalog_knows(publisher: Publisher):
    for dataset in ("commands", "hashes"):
        build_version(dataset, storage=publisher.storage, catalog=publisher.small.catalog)
    datasets = PublishedSets(publisher.storage).open_newest()
    assert datasets is not None
    published = PublishedSnapshot(datasets.reader, nullcontext)
    past = CatalogSnapshot(publisher.small.catalog, 100)
    known, of_catalog = published.project("Demo"), past.project("demo")
    assert known is not None
    assert of_catalog is not None
    assert of_catalog["first_serial"] == of_catalog["last_serial"] == 1
    only_catalog = ("first_serial", "last_serial", "links", "status")
    assert known == of_catalog | dict.fromkeys(only_catalog)
    version = published.version("demo", "1")
    assert version is not None
    assert version == past.version("demo", "1.0")
    assert [file["filename"] for file in version["files"]] == ["demo-1.0.tar.gz"]
    for snapshot in (published, past):
        assert snapshot.version("none", "1") is snapshot.version("demo", "2") is None
        assert snapshot.project("none") is None
