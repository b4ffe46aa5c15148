"""A few requests detect the kind and address of an index, or report what each address answered."""

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pypi_assets.index.detection import Detection, UnknownIndexError, detect
from pypi_assets.index.errors import LoginError, NoAnswerError, PackageIndexError, TransientError
from pypi_assets.index.kind_names import AUTO, PAGES, SIMPLE, XMLRPC
from pypi_assets.index.urls import addresses_of, base_of
from pypi_assets_tests.index.clients import JSON, client_of, events
from pypi_assets_tests.index.loopback import Answer, Loopback, Request, serving
from pypi_assets_tests.named import unnamed

HTML = {"Content-Type": "text/html; charset=utf-8"}
SERIAL = {"X-PyPI-Last-Serial": "7"}
PAGE = Answer(200, b"<title>Links for demo</title><a href='demo-1.0.tar.gz'>demo-1.0.tar.gz</a>", HTML)
LOGIN = Answer(200, b"<form><input type='password'></form>", HTML)
WELCOME = Answer(200, b"<h1>Welcome</h1><a href='https://example.org/'>about</a>", HTML)
FOLDERS = Answer(200, b"<title>Index of /</title><a href='docs/'>docs/</a><a href='images/'>images/</a>", HTML)
FILES = Answer(200, b"<title>Index of /</title><a href='demo-1.0-py3-none-any.whl'>demo</a>", HTML)


def listed(*names: str, serial: int | None = None, headers: Mapping[str, str] = JSON) -> Answer:
    stated = {} if serial is None else {"_last-serial": serial}
    projects = [{"name": name} | stated for name in names]
    document = {"meta": {"api-version": "1.0"} | stated, "projects": projects}
    return Answer(200, json.dumps(document).encode(), {**headers})


def linked(*names: str) -> Answer:
    links = "".join(f"<a href='{name}/'>{name}</a>" for name in names)
    return Answer(200, f"<title>Simple index</title>{links}".encode(), HTML)


def found(answers: Mapping[str, Answer], path: str, *projects: str) -> tuple[Detection, Loopback]:
    """Detect the index at `path` of a server that has `answers` by path and a 404 for all else."""

    def answer(request: Request) -> Answer:
        return answers.get(request.path, Answer(404))

    with serving(answer) as loopback:
        url = loopback.url + path
        with client_of(loopback, index_url=url, changelog_url=f"{base_of(url)}/pypi") as client:
            return detect(client, url, projects), loopback


def test_kinds_are_detected_at_their_addresses(subtests: pytest.Subtests) -> None:
    cases: list[tuple[str, Mapping[str, Answer], str, tuple[str, str, int | None, int | None]]] = [
        ("changelog", {"/simple/": listed("a", serial=7), "/pypi": events(9)}, "/", ("/simple/", XMLRPC, 9, 1)),
        ("no changelog", {"/simple/": listed("a", serial=7)}, "/simple", ("/simple/", SIMPLE, 7, 1)),
        ("serial in a header", {"/simple/": listed(headers=JSON | SERIAL)}, "/simple/", ("/simple/", SIMPLE, 7, None)),
        (
            "serial, HTML alone",
            {"/simple/": replace(linked("a"), headers=HTML | SERIAL)},
            "/",
            ("/simple/", PAGES, None, 1),
        ),
        (
            "a serial of the whole",
            {"/simple/": listed("a", headers=JSON | SERIAL)},
            "/",
            ("/simple/", PAGES, None, None),
        ),
        ("devpi", {"/me/dev/+simple/": listed("a", "b")}, "/me/dev", ("/me/dev/+simple/", PAGES, None, 2)),
        ("devpi's other folder", {"/me/+simple/": listed()}, "/me/simple/", ("/me/+simple/", PAGES, None, 0)),
        ("pypiserver", {"/": WELCOME, "/simple/": linked("a")}, "", ("/simple/", PAGES, None, 1)),
        ("an empty one", {"/simple/": linked()}, "/simple/", ("/simple/", PAGES, None, 0)),
        ("a folder", {"/w/": linked("demo"), "/w/demo/": PAGE}, "/w", ("/w/", PAGES, None, 1)),
        (
            "one that fails elsewhere",
            {"/simple/": Answer(500), "/+simple/": listed()},
            "/",
            ("/+simple/", PAGES, None, 0),
        ),
    ]
    for name, answers, path, (at, kind, serial, projects) in cases:
        with subtests.test(name):
            detection, loopback = found(answers, path)
            assert detection.index_url == loopback.url + at
            assert (detection.kind, detection.serial, detection.projects) == (kind, serial, projects)
            assert detection.lister == (PAGES if kind == PAGES else AUTO)
            assert bool(detection.changelog) == (kind == SIMPLE)


def test_redirected_list_is_named() -> None:
    moved = Answer(301, headers={"Location": "/new/simple/"})
    detection, loopback = found({"/simple/": moved, "/new/simple/": listed("a")}, "/simple/")
    assert (detection.index_url, detection.moved_to) == (f"{loopback.url}/simple/", f"{loopback.url}/new/simple/")


def test_index_without_list_is_detected_by_pages_of_named_projects() -> None:
    with_serial = Answer(
        200,
        json.dumps(
            {
                "meta": {"api-version": "1.0", "_last-serial": 3},
                "name": "demo",
                "files": [{"filename": "demo-1.0.tar.gz", "url": "demo-1.0.tar.gz", "hashes": {}}],
            }
        ).encode(),
        {**JSON},
    )
    cases = [(PAGE, {}, PAGES), (with_serial, {}, PAGES), (with_serial, {"/pypi": events(3)}, XMLRPC)]
    for page, others, kind in cases:
        detection, loopback = found({"/simple/demo/": page, **others}, "/", "demo", "other")
        assert (detection.index_url, detection.kind) == (f"{loopback.url}/simple/", kind)
        assert detection.projects is None


def test_missing_index_error_has_the_answer_of_each_address(subtests: pytest.Subtests) -> None:
    elsewhere = Answer(303, headers={"Location": "https://other.example.org/simple/"})
    cases: list[tuple[str, Mapping[str, Answer], tuple[object, ...]]] = [
        ("nothing", {}, (404,)),
        ("a login", {"/simple/": LOGIN}, (200, "text/html", 404)),
        ("a page", {"/": WELCOME}, (200, 404)),
        ("a page with a serial", {"/": replace(WELCOME, headers=HTML | SERIAL)}, (200, 404)),
        ("folders of something else", {"/": FOLDERS}, (200, 404)),
        ("files", {"/": FILES}, (200, 404)),
        ("a picture", {"/simple/": Answer(200, b"", {"Content-Type": "image/png"})}, (200, "image/png")),
        ("broken JSON", {"/simple/": Answer(200, b"{", {**JSON})}, (200, 404)),
        ("forbidden", {"/simple/": Answer(403)}, (403, 404)),
        ("another host", {"/simple/": elsewhere}, ("https://other.example.org/simple/", 404)),
    ]
    for name, answers, shown in cases:
        with subtests.test(name), pytest.raises(UnknownIndexError) as caught:
            found(answers, "/")
        addresses = [path for path in ("/simple/", "/+simple/", "/") if path != "/" or not answers]
        assert unnamed(str(caught.value), *shown, "PYPI_ASSETS_INDEX_URL", "PYPI_ASSETS_PROJECTS") == [], name
        assert all(path in str(caught.value) for path in addresses), name
        assert unnamed(str(caught.value), "devpi", "Artifactory", "Nexus", "GitLab") == [], name
        assert "PYPI_ASSETS_ALLOWED_FILE_HOSTS" not in str(caught.value), name


def test_transient_failure_of_an_address_is_raised_as_such() -> None:
    for status in (429, 503):
        with pytest.raises(TransientError) as caught:
            found({"/simple/": Answer(status)}, "/")
        assert unnamed(str(caught.value), status, 404) == []


def test_failure_common_to_all_addresses_is_raised_immediately() -> None:
    requests: list[str] = []

    def demand_login(request: Request) -> Answer:
        requests.append(request.path)
        return Answer(401)

    with serving(demand_login) as loopback, client_of(loopback) as client:
        with pytest.raises(LoginError) as caught:
            detect(client, loopback.url)
        assert unnamed(str(caught.value), 401, "netrc", "keyring") == []
        url = loopback.url
    assert requests == ["/simple/"]
    with client_of(loopback) as client, pytest.raises(NoAnswerError) as gone:
        detect(client, url)
    assert isinstance(gone.value, PackageIndexError)
    assert unnamed(str(gone.value), "PYPI_ASSETS_INDEX_URL", f"{url}/simple/") == []


def test_large_list_with_serial_header_is_not_downloaded() -> None:
    large = Answer(200, b"", {**JSON, **SERIAL, "Content-Length": str(40 * 1024**2)}, is_last=True)
    detection, _ = found({"/simple/": large, "/pypi": events(8)}, "/simple/")
    assert (detection.kind, detection.serial) == (XMLRPC, 8)


def test_candidate_addresses_are_unique() -> None:
    cases = {
        "http://h": ["http://h/simple/", "http://h/+simple/", "http://h/"],
        "http://h/simple": ["http://h/simple/", "http://h/+simple/"],
        "http://h/me/dev/+simple/": ["http://h/me/dev/+simple/", "http://h/me/dev/simple/"],
        "http://h/r/": ["http://h/r/simple/", "http://h/r/+simple/", "http://h/r/"],
    }
    assert {url: addresses_of(url) for url in cases} == cases
    assert [base_of(url) for url in cases] == ["http://h", "http://h", "http://h/me/dev", "http://h/r"]
