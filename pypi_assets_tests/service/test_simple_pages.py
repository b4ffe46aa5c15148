"""Simple pages in JSON and HTML: clients read the same from both, and no text of the index becomes markup."""

import json
from urllib.parse import quote

import pytest
from pypi_simple import ProjectPage

from pypi_assets.catalog.reports.simple_page import SimpleFile, SimplePage
from pypi_assets.lookup.simple_reader import in_page_order
from pypi_assets.service.simple_pages import HTML, V1_HTML, V1_JSON, negotiate, render_page, upload_time
from pypi_assets.version_order import version_key

BASE = "https://host.example.org/prefix/simple/demo/"
SHA256 = "ab" * 32


def file(filename: str, version: str, **facts: object) -> SimpleFile:
    known: dict[str, object] = {
        "kind": "wheel" if filename.endswith(".whl") else "sdist",
        "url": "https://files.example.org/x",
        "sha256": SHA256,
        "size": 7,
        "requires_python": None,
        "uploaded_at": "2026-01-02T03:04:05.000006Z",
        "yanked": False,
        "metadata_sha256": None,
        "is_rendered": False,
    }
    return SimpleFile(filename, version, **(known | facts))  # type: ignore[arg-type]


PAGE = SimplePage(
    "demo",
    "archived",
    tuple(
        in_page_order(
            [
                file("demo-1.10.tar.gz", "1.10", metadata_sha256="cd" * 32, is_rendered=True),
                file("demo-1.9-py3-none-any.whl", "1.9", yanked='a "reason" <b>', requires_python=">=3.8,<4"),
                file("demo-1!2.0+a.b-1-py3-none-any.whl", "1!2.0+a.b", metadata_sha256="ef" * 32, yanked=True),
                file("demo-2.0 é#?%41.zip", "2.0", sha256=None, size=None, uploaded_at=None, url=None),
            ]
        )
    ),
    17,
)


def test_json_and_html_agree() -> None:
    by_json = ProjectPage.from_json_data(json.loads(render_page(PAGE, V1_JSON)), base_url=BASE)
    for form in (HTML, V1_HTML):
        by_html = ProjectPage.from_html("demo", render_page(PAGE, form).decode(), base_url=BASE)
        for one, other in zip(by_json.packages, by_html.packages, strict=True):
            names = ("filename", "url", "project", "version", "digests", "requires_python", "is_yanked")
            assert [getattr(one, name) for name in names] == [getattr(other, name) for name in names]
            assert (one.yanked_reason or "") == (other.yanked_reason or "")
            assert one.has_metadata == bool(other.has_metadata)
            assert (one.metadata_digests or None) == (other.metadata_digests or None)
        assert (by_json.status, by_json.repository_version) == (by_html.status, by_html.repository_version)
    assert by_json.versions == ["1.9", "1.10", "2.0", "1!2.0+a.b"]
    assert [package.yanked_reason for package in by_json.packages] == ['a "reason" <b>', None, None, None]
    assert str(by_json.status) == "archived"


def test_json_omits_unknown_values() -> None:
    document = json.loads(render_page(PAGE, V1_JSON))
    assert document["meta"] == {"api-version": "1.0", "_last-serial": 17}  # a file without a size
    assert document["files"][2] == {
        "filename": "demo-2.0 é#?%41.zip",
        "url": "../../files/unhashed/demo/demo-2.0%20%C3%A9%23%3F%2541.zip",
        "hashes": {},
        "yanked": False,
        "core-metadata": False,
        "data-dist-info-metadata": False,
    }
    assert document["files"][1]["core-metadata"] == {"sha256": "cd" * 32}
    without = json.loads(render_page(PAGE, V1_JSON, has_sdist_metadata=False))
    assert [bool(entry["core-metadata"]) for entry in without["files"]] == [False, False, False, True]
    unknown = json.loads(render_page(SimplePage("x", None, ()), V1_JSON))
    assert unknown == {"meta": {"api-version": "1.4"}, "name": "x", "versions": [], "files": []}


def test_page_declares_the_api_version_that_it_follows() -> None:
    known = file("demo-1.0.zip", "1.0")
    for files, version in (((), "1.4"), ((known,), "1.4"), ((known._replace(size=None), known), "1.0")):
        page = SimplePage("demo", "active", files)
        document = json.loads(render_page(page, V1_JSON))
        assert document["meta"]["api-version"] == version
        assert version == "1.0" or all("size" in entry for entry in document["files"])
        for form in (HTML, V1_HTML):
            by_html = ProjectPage.from_html("demo", render_page(page, form).decode(), base_url=BASE)
            assert by_html.repository_version == version


def test_addresses_are_relative_to_the_page() -> None:
    document = json.loads(render_page(PAGE, V1_JSON))
    assert document["files"][1]["url"] == f"../../files/{SHA256}/demo-1.10.tar.gz"
    pinned = json.loads(render_page(PAGE, V1_JSON, is_pinned=True))
    assert pinned["files"][1]["url"] == f"../../../files/{SHA256}/demo-1.10.tar.gz"
    assert pinned["files"][2]["url"] == document["files"][2]["url"]  # without a hash, the address contains the serial
    assert "://" not in render_page(PAGE, HTML).decode()


def test_index_text_is_never_markup() -> None:
    evil = '"><script>alert(1)</script>'
    page = SimplePage("x", evil, (file("x.whl", evil, requires_python=evil, yanked=evil, uploaded_at=evil),))
    assert b"<script" not in render_page(page, HTML)
    assert b"half?" in render_page(SimplePage("x", "half\ud800", ()), V1_JSON)
    assert b"half?" in render_page(SimplePage("x", "half\ud800", ()), HTML)


FORMS = [
    (None, HTML),
    ("*/*", HTML),
    ("text/html", HTML),
    ("text/*;q=0.5, application/*", V1_HTML),
    (V1_JSON, V1_JSON),
    (f"{V1_JSON}, {V1_HTML}; q=0.1, text/html; q=0.01", V1_JSON),
    (f"{V1_JSON}, {V1_HTML};q=0.2, text/html, */*;q=0", HTML),
    (f"{V1_JSON.upper()};q=0.9, */*;q=0.1", V1_JSON),
    ("application/vnd.pypi.simple.latest+json", V1_JSON),
    (f"{V1_JSON};q=0", HTML),
    (f"{V1_JSON};q=nan", HTML),
    ("image/png", HTML),
    (",;=,q", HTML),
]


def test_content_type_is_negotiated(subtests: pytest.Subtests) -> None:
    for accept, form in FORMS:
        with subtests.test(accept=accept, form=form):
            assert negotiate(accept) == form


@pytest.mark.parametrize(
    ("text", "time"),
    [
        (None, None),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05", "2026-01-02T03:04:05Z"),
        ("2026-01-02T03:04:05+02:00", "2026-01-02T01:04:05Z"),
        ("nonsense", None),
    ],
)
def test_times_are_in_utc(text: str | None, time: str | None) -> None:
    assert upload_time(text) == time


def test_any_index_text_is_valid_in_json(subtests: pytest.Subtests) -> None:
    """Odd texts also replace values that are nearly always plain."""
    for text in ['"', "\\", "\n", "\x00", "é", "\u2028", "x" * 70, "ab" * 32 + " ", "\uff11", "</script>"]:
        with subtests.test(text=text):
            odd = file(
                f"demo-{text}.zip",
                text,
                sha256=text,
                requires_python=text,
                yanked=text,
                metadata_sha256=text,
                is_rendered=True,
            )
            plain = file("demo-1.zip", "1", uploaded_at=f"2026-01-02{text}")
            page = json.loads(render_page(SimplePage("demo", text, (odd, plain)), V1_JSON))
            found, other = page["files"]
            assert page["versions"] == sorted({text, "1"}, key=version_key)
            assert (found["filename"], found["hashes"]) == (odd.filename, {"sha256": text})
            assert (found["requires-python"], found["yanked"], found["core-metadata"]) == (text, text, {"sha256": text})
            assert found["url"] == f"../../files/{text}/{quote(odd.filename, safe='')}"
            assert other.keys() == found.keys() - {"upload-time", "requires-python", "_core-metadata-is-rendered"}
