"""HTML pages of PEP 503, both well-formed and broken."""

import time
from collections.abc import Callable

import pytest

from pypi_assets.distributions.filenames import SDIST_SUFFIXES
from pypi_assets.index.errors import RefusedError
from pypi_assets.index.models import IndexFile
from pypi_assets.index.observing.html_pages import MAX_HTML_BYTES, read_html, read_html_list, read_html_page
from pypi_assets.index.observing.shown_pages import ShownFile, ShownPage
from pypi_assets_tests.naming import mentions, naming

URL = "http://index.example.org/simple/demo/"
SHA = "ab" * 32
WHEEL = "demo-1.0-py3-none-any.whl"


def page(body: str, *, url: str = URL, charset: str | None = None, is_certain: bool = False) -> ShownPage:
    return read_html_page(body.encode(), project="demo", url=url, charset=charset, is_certain=is_certain)


def files(body: str) -> dict[str, ShownFile]:
    return {entry.file.filename: entry for entry in page(body).files}


def test_all_attributes_of_a_link_are_read() -> None:
    parsed = page(
        "<!DOCTYPE html><meta name='pypi:repository-version' content='1.3'>"
        "<meta name='pypi:project-status' content='archived'>"
        f"<A HREF='../../files/{WHEEL}#sha256={SHA.upper()}' data-requires-python='&gt;=3.8' data-yanked='broken'"
        f" data-dist-info-metadata='sha256={SHA}' data-gpg-sig='false'>text</A>"
    )
    address = f"http://index.example.org/files/{WHEEL}"
    file = IndexFile(WHEEL, address, SHA, None, None, ">=3.8", True, "broken", True, SHA)
    assert parsed.files == (ShownFile(file, {"sha256": SHA}, False),)
    assert (parsed.status, parsed.broken) == ("archived", ())


@pytest.mark.parametrize(
    ("attributes", "metadata", "sha256"),
    [
        ("data-core-metadata='true'", True, None),
        ("data-core-metadata='false'", False, None),
        (f"data-core-metadata='sha256={SHA}' data-dist-info-metadata='true'", True, SHA),
        ("data-dist-info-metadata='md5=00'", True, None),
        ("", False, None),
    ],
)
def test_metadata_attribute_has_two_names(attributes: str, metadata: bool, sha256: str | None) -> None:
    file = files(f"<a href='{WHEEL}' {attributes}>x</a>")[WHEEL].file
    assert (file.core_metadata, file.core_metadata_sha256) == (metadata, sha256)


@pytest.mark.parametrize(
    ("base", "href", "address"),
    [
        ("", "demo-1.0.tar.gz", "http://index.example.org/simple/demo/demo-1.0.tar.gz"),
        ("", "/x/demo-1.0.tar.gz", "http://index.example.org/x/demo-1.0.tar.gz"),
        ("", "//files.example.org/demo-1.0.tar.gz", "http://files.example.org/demo-1.0.tar.gz"),
        ("", "https://me:secret@files.example.org/demo-1.0.tar.gz", "https://files.example.org/demo-1.0.tar.gz"),
        ("", "demo-1.0.tar.gz?token=1#md5=00", "http://index.example.org/simple/demo/demo-1.0.tar.gz?token=1"),
        ("<base href='https://cdn.example.org/f/'>", "demo-1.0.tar.gz", "https://cdn.example.org/f/demo-1.0.tar.gz"),
        (
            "<base href='../f/'><base href='/g/'>",
            "demo-1.0.tar.gz",
            "http://index.example.org/simple/f/demo-1.0.tar.gz",
        ),
        ("<base target='x'>", " demo-1.0.tar.gz ", "http://index.example.org/simple/demo/demo-1.0.tar.gz"),
    ],
)
def test_urls_are_relative_to_the_first_base(base: str, href: str, address: str) -> None:
    [found] = files(f"{base}<a href='{href}'>x</a>").values()
    assert found.file.url == address


def test_other_files_are_skipped_and_filenames_come_from_urls() -> None:
    by_filename = files(
        "<a href='../'>..</a><a href='?C=M'>sort</a><a href='demo-1.0.tar.gz.asc'>sig</a><a>none</a>"
        "<a href='demo%2D1.0%2Bl.tar.gz'>other text</a><a href='README.txt'>r</a><a name='x' href=''>e</a>"
    )
    assert list(by_filename) == ["demo-1.0+l.tar.gz"]


def test_each_kind_of_sdist_is_a_file() -> None:
    names = [f"demo-1.0{suffix}" for suffix in (*SDIST_SUFFIXES, ".tar.Z", ".TGZ")]
    assert list(files("".join(f"<a href='{name}'>x</a>" for name in names))) == names


def test_blanks_in_links_are_quoted() -> None:
    [(name, found)] = files("<a href='my files/demo-1.0 (1).zip'>x</a>").items()
    assert (name, found.file.url) == ("demo-1.0 (1).zip", f"{URL}my%20files/demo-1.0%20(1).zip")


def test_broken_link_does_not_affect_others() -> None:
    parsed = page(
        "<a href='demo-1.0.tar.gz#sha256=zz'>a</a><a href='ftp://h/demo-2.0.tar.gz'>b</a>"
        "<a href='a%2Fb%00demo-3.0.tar.gz'>c</a><a href='http://[demo-4.0.tar.gz'>d</a>"
        f"<a href='{WHEEL}#sha256={SHA}'>e</a><a href='{WHEEL}#sha256={SHA}'>the same</a>"
        f"<a href='/x/{WHEEL}#sha256={SHA}'>the same elsewhere</a><a href='{WHEEL}#sha256={'cd' * 32}'>another</a>"
    )
    assert [entry.name for entry in parsed.broken] == [
        "demo-1.0.tar.gz",
        "demo-2.0.tar.gz",
        "a/b\0demo-3.0.tar.gz",
        WHEEL,
    ]
    problems = [entry.problem for entry in parsed.broken]
    assert mentions(problems[0], "sha256", 64)
    assert mentions(problems[2], r"a/b\x00demo-3.0.tar.gz")
    assert len(set(problems)) == 4
    assert [(entry.file.filename, entry.file.url is None) for entry in parsed.files] == [
        ("demo-1.0.tar.gz", True),
        ("demo-2.0.tar.gz", True),
        (WHEEL, False),
    ]


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("<form><input name=user><input type=password></form>", []),
        ("<h1>Welcome</h1><a href='/login'>log in</a>", []),
        ("", []),
        ("<meta name='pypi:repository-version' content='2.0'>", ["2.0", "1.x"]),
        ("<![bad [ <a href='demo-1.0.tar.gz'>", ["HTML"]),
    ],
)
def test_page_that_is_not_from_an_index_is_rejected(body: str, values: list[str]) -> None:
    with pytest.raises(RefusedError, match=naming(URL, *values)):
        page(body)


@pytest.mark.parametrize(
    "title",
    [
        "Links for demo",
        "Index of /simple/demo/",
        "Directory listing for /simple/demo/",
        "me/dev: links for demo",
        "me/dev: simple list (including inherited indices)",
    ],
)
def test_empty_page_needs_the_repository_version_tag(title: str) -> None:
    assert page(f"<title>{title}</title>").files == ()
    refresh = "<form method='post'><input name='refresh' type='submit' value='Refresh'></form>"
    assert page(f"<title>{title}</title>{refresh}").files == ()
    with pytest.raises(RefusedError, match=naming(URL)):
        page(f"<title>{title}</title><form><input name='user'></form>")
    assert page("", is_certain=True).files == ()


def test_list_has_each_project_of_the_index_once() -> None:
    body = (
        "<title>Simple index</title><a href='Demo.Pkg/'>Demo.Pkg</a><a href='/simple/other'>misleading</a>"
        "<a href='demo-pkg/'>again</a><a href='../'>..</a><a href='/other/place/'>x</a><a href='sub/folder/'>x</a>"
        "<a href='%2e%2e/'>dots</a><a href='/simple/'>itself</a>"
    )
    index_url = "http://h/simple/"
    parsed = read_html_list(body.encode(), url=index_url, charset=None, index_url=index_url)
    assert [(project.name, project.url) for project in parsed] == [
        ("Demo.Pkg", "http://h/simple/Demo.Pkg/"),
        ("other", "http://h/simple/other"),
    ]


def test_list_may_link_to_index_files_of_folders() -> None:
    index_url = "http://h/simple/"
    body = (
        "<a href='demo/index.html'>demo</a><a href='/simple/Other.Pkg/INDEX.HTM'>x</a><a href='index.html'>itself</a>"
        "<a href='../index.html'>..</a><a href='index.html/'>a project</a><a href='third/other.html'>x</a>"
    )
    for url in (index_url, f"{index_url}index.html"):
        parsed = read_html_list(body.encode(), url=url, charset=None, index_url=index_url)
        assert [(project.name, project.url) for project in parsed] == [
            ("demo", "http://h/simple/demo/index.html"),
            ("Other.Pkg", "http://h/simple/Other.Pkg/INDEX.HTM"),
            ("index.html", "http://h/simple/index.html/"),
        ]


@pytest.mark.parametrize(
    ("content", "charset"),
    [
        ("é".encode("latin-1"), "ISO-8859-1"),
        ("é".encode(), None),
        ("é".encode(), "idna"),
        ("\ufeffé".encode("utf-16"), None),
    ],
)
def test_encodings(content: bytes, charset: str | None) -> None:
    if content.startswith(b"\xff\xfe"):
        content = content[:2] + "<title>".encode("utf-16-le") + content[4:]
    else:
        content = b"<title>" + content
    assert read_html(content, url=URL, charset=charset).title == "é"


HOSTILE: list[Callable[[], str]] = [
    lambda: "<!--" * 100_000,
    lambda: "<a " * 100_000,
    lambda: "<a " + "x=1 " * 100_000,
    lambda: "<script>" + "a" * 3_000_000,
    lambda: "<a href='" * 100_000,
    lambda: "<?" * 100_000,
    lambda: "&" * 100_000,
]


@pytest.mark.parametrize("body", HOSTILE)
def test_page_that_is_slow_to_parse_is_rejected(body: Callable[[], str]) -> None:
    started = time.thread_time()
    with pytest.raises(RefusedError):
        read_html(body().encode(), url=URL, charset=None)
    assert time.thread_time() - started < 2


def test_unclosed_links_take_little_memory() -> None:
    found = read_html(b"<a href=x>t<b><p>" * 20_000, url=URL, charset=None)
    assert len(found.links) == 20_000
    assert all(link.text == "t" for link in found.links)


def test_too_large_page_is_rejected() -> None:
    with pytest.raises(RefusedError):
        read_html(bytes(MAX_HTML_BYTES + 1), url=URL, charset=None)
