from pypi_assets.lookup.latest import open_latest
from pypi_assets.resolve.candidates import Row
from pypi_assets.resolve.releases import ReleaseIndex, past_index
from pypi_assets.resolve.resolving import resolve
from pypi_assets_tests.lookup.conftest import publisher  # noqa: F401 - a fixture
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.resolve.made_index import MadeIndex, question

COLUMNS = ("version", "filename", "kind", "sha256", "uploaded_at", "requires_python", "yanked", "requires_dist")


def files(index: ReleaseIndex, project: str) -> list[Row]:
    found = index.releases(project)
    files = [{name: one[name] for name in COLUMNS} for release in found.names for one in found.files(release)]
    return sorted(files, key=lambda one: one["filename"])


def test_published_and_past_indexes_have_the_same_files(publisher: Publisher):  # noqa: F811
    publisher.publish()
    with open_latest("depgraph", publisher.storage) as depgraph:
        published = ReleaseIndex(depgraph.serial, depgraph.releases)
        past = past_index(publisher.small.catalog, published.serial)
        for project in ("demo", "demo-b", "other", "nothing"):
            assert files(past, project) == files(published, project)
        assert files(published, "other")
        assert not files(past_index(publisher.small.catalog, 100), "other")
        questions = question("other")
        assert resolve(published, questions).pins == resolve(past, questions).pins == {"other": "1"}
        assert published.absence("nothing") is None
        assert past.absence("other") is None


def test_what_was_read_is_forgotten_when_it_is_much(monkeypatch):
    monkeypatch.setattr("pypi_assets.resolve.releases._REMEMBERED_RELEASES", 7)
    index = MadeIndex({name: {"1": [], "2": []} for name in "abc"})
    questions = [question(name) for name in "abc"]
    for one in (*questions, questions[2], questions[1], questions[0]):
        resolve(index, one)
    assert index.reads == ["a", "b", "c", "a"]
