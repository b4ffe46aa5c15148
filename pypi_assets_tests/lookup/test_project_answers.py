"""Projects and versions: the same from published versions and from the catalog. `service/` has more of them."""

from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.project_answers import files_at, project_at, published_project, published_version, version_at
from pypi_assets.lookup.published_sets import PublishedSets
from pypi_assets_tests.lookup.publisher import Publisher


def test_both_sources_agree_but_for_what_only_the_catalog_knows(publisher: Publisher):
    for dataset in ("commands", "hashes"):
        build_version(dataset, storage=publisher.storage, catalog=publisher.small.catalog)
    datasets = PublishedSets(publisher.storage).open_newest()
    assert datasets is not None
    catalog = publisher.small.catalog
    published, past = published_project(datasets.reader, "Demo"), project_at(catalog, 100, "demo")
    assert published is not None
    assert past is not None
    assert past["first_serial"] == past["last_serial"] == 1
    only_catalog = ("first_serial", "last_serial", "links", "status")
    assert published == past | dict.fromkeys(only_catalog)
    assert published_version(datasets.reader, "demo", "1") == version_at(catalog, 100, "demo", "1.0")
    assert [file["filename"] for file in files_at(catalog, 100, "demo", "1")] == ["demo-1.0.tar.gz"]
    for name, version in (("none", "1"), ("demo", "2")):
        assert published_version(datasets.reader, name, version) is None
        assert version_at(catalog, 100, name, version) is None
    assert published_project(datasets.reader, "none") is None
    assert project_at(catalog, 100, "none") is None
    assert project_at(catalog, 0, "demo") is None
