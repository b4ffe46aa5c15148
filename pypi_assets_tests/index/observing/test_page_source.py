"""Pages and lists are requested as JSON or HTML with conditions. Other content is rejected with the URL's name."""

import time
from collections.abc import Iterator
from email.utils import formatdate

import pytest

from pypi_assets.index.client import IndexClient
from pypi_assets.index.errors import NotOnIndexError, PackageIndexError, RefusedError, TransientError
from pypi_assets.index.observing.page_source import SimplePages
from pypi_assets.index.observing.shown_pages import NO_VALIDATORS, ShownPage
from pypi_assets.index.transport import Retries
from pypi_assets_tests.naming import naming
from pypi_assets_tests.served_pages import HTML, JSON, Answer, ServedPages, served_pages


@pytest.fixture(scope="module")
def _served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPages]:
    with served_pages(tmp_path_factory.mktemp("pages")) as index:
        index.wheel("demo", "1.0")
        index.sdist("Other.Pkg", "2.0")
        yield index


@pytest.fixture
def index(_served: ServedPages) -> ServedPages:
    _served.answers, _served.speaks_json, _served.has_list = lambda _: None, False, True
    return _served


@pytest.fixture
def source(index: ServedPages) -> Iterator[SimplePages]:
    with IndexClient(index.url, changelog_url=index.url, retries=Retries(1)) as client:
        yield SimplePages(client)


def shown(source: SimplePages, project: str = "demo") -> ShownPage:
    page = source.page(project, None, NO_VALIDATORS)
    assert page is not None
    return page


def test_json_and_html_show_the_same(index: ServedPages, source: SimplePages) -> None:
    as_html = shown(source)
    index.speaks_json = True
    as_json = shown(source)
    assert as_html.files == as_json.files
    assert as_html.files[0].hashes.keys() == {"sha256"}
    assert as_html.validators.etag
    assert as_html.validators != as_json.validators


@pytest.mark.parametrize("speaks_json", [False, True])
def test_list_is_read(index: ServedPages, source: SimplePages, speaks_json: bool) -> None:
    index.speaks_json = speaks_json
    listing = source.list_of_projects(NO_VALIDATORS)
    assert listing is not None
    assert [project.name for project in listing.projects] == ["demo", "other-pkg"]
    assert source.list_of_projects(listing.validators) is None


def test_unchanged_page_is_not_sent_again(source: SimplePages) -> None:
    assert source.page("demo", None, shown(source).validators) is None


def test_recently_changed_page_is_requested_unconditionally(index: ServedPages, source: SimplePages) -> None:
    """The page can change again within the second that its Last-Modified names."""
    body = b"<title>Links for demo</title><a href='demo-1.0.tar.gz'>demo-1.0.tar.gz</a>"
    for age_s, is_kept in ((0, False), (1, False), (-5, False), (10, True), (86_400, True)):

        def answer(_path: str, age_s: int = age_s) -> Answer:  # the age counts from the answer, however late it is
            now = time.time()
            dates = {"Date": formatdate(now, usegmt=True), "Last-Modified": formatdate(now - age_s, usegmt=True)}
            return 200, {"Content-Type": HTML, **dates}, body

        index.answers = answer
        assert (shown(source).validators != NO_VALIDATORS) == is_kept, age_s
    index.answers = lambda path: (200, {"Content-Type": HTML, "Last-Modified": "yesterday"}, body)
    assert shown(source).validators.last_modified == "yesterday"


def test_missing_page_or_list(index: ServedPages, source: SimplePages) -> None:
    index.has_list = False
    for request in (lambda: shown(source, "missing"), lambda: source.list_of_projects(NO_VALIDATORS)):
        with pytest.raises(NotOnIndexError, match=naming(404)):
            request()


LOGIN = b"<html><form action='/login'><input type=password></form></html>"
ODD: list[tuple[dict[str, Answer], type[PackageIndexError], tuple[object, ...]]] = [
    ({"demo": (200, {"Content-Type": HTML}, LOGIN)}, RefusedError, ("demo",)),
    (
        {"demo": (302, {"Location": "/login/"}, b""), "login": (200, {"Content-Type": HTML}, LOGIN)},
        RefusedError,
        ("login",),
    ),
    (
        {"demo": (302, {"Location": "https://login.example.org/"}, b"")},
        RefusedError,
        ("login.example.org", "PYPI_ASSETS_ALLOWED_FILE_HOSTS"),
    ),
    ({"demo": (200, {"Content-Type": HTML}, b"<h1>It works!</h1>")}, RefusedError, ("demo",)),
    ({"demo": (200, {"Content-Type": JSON}, b"{}")}, RefusedError, ("demo", "meta")),
    ({"demo": (200, {"Content-Type": JSON}, b"{")}, TransientError, ("demo", "JSON")),
    ({"demo": (200, {"Content-Type": "image/png"}, b"x")}, TransientError, ("demo", "image/png")),
    ({"demo": (200, {}, b"x")}, TransientError, ("demo",)),
    ({"demo": (401, {"Content-Type": HTML}, LOGIN)}, RefusedError, ("demo", 401)),
    ({"demo": (503, {"Content-Type": HTML}, LOGIN)}, TransientError, ("demo", 503)),
]


def test_content_that_is_not_a_page_is_rejected(
    index: ServedPages, source: SimplePages, subtests: pytest.Subtests
) -> None:
    for answers, kind, values in ODD:
        with subtests.test(answers=answers, kind=kind):
            index.answers = lambda path, answers=answers: answers.get(path.strip("/").rpartition("/")[2])
            with pytest.raises(kind, match=naming(*values)):
                shown(source)


def test_redirect_to_the_same_project_is_followed(index: ServedPages, source: SimplePages) -> None:
    index.answers = lambda path: (301, {"Location": "/simple/demo/"}, b"") if path == "/simple/demo" else None
    page = source.page("demo", index.url + "demo", NO_VALIDATORS)
    assert page is not None
    assert len(page.files) == 1


def test_serial_of_the_index_is_noticed(index: ServedPages, source: SimplePages) -> None:
    body = b'{"meta": {"api-version": "1.0", "_last-serial": 7}, "name": "demo", "files": []}'
    index.answers = lambda _: (200, {"Content-Type": JSON}, body)
    assert shown(source).serial == 7
    index.answers = lambda _: (200, {"Content-Type": HTML, "X-PyPI-Last-Serial": "8"}, b"<title>Links for demo</title>")
    assert shown(source).serial == 8
