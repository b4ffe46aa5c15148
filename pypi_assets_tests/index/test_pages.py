import json
from typing import Any
from urllib.parse import urljoin

import pytest

from pypi_assets.index.errors import RefusedError, TransientError
from pypi_assets.index.models import IndexFile, ProjectPage
from pypi_assets.index.pages import RENDERED_METADATA_KEY, read_project_page
from pypi_assets.index.urls import redact, split_fetchable
from pypi_assets_tests.naming import naming

URL = "https://index.example.org/simple/demo-pkg/"
SHA256 = "ab" * 32


def entry(**changes: object) -> dict[str, object]:
    whole = {"filename": "demo_pkg-1.0.tar.gz", "url": "../../f/demo_pkg-1.0.tar.gz", "hashes": {"sha256": SHA256}}
    changed = whole | {key.replace("_", "-"): value for key, value in changes.items()}
    return {key: value for key, value in changed.items() if value is not ...}


def page(*files: object, **changes: object) -> dict[str, Any]:
    whole = {"meta": {"api-version": "1.4", "_last-serial": 5}, "name": "Demo.Pkg", "files": list(files)}
    return {key: value for key, value in (whole | changes).items() if value is not ...}


def read(document: object, header_serial: int | None = None) -> ProjectPage:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_project_page(body, project="demo-pkg", url=URL, header_serial=header_serial, etag='"e"')


def read_one(**changes: object) -> IndexFile:
    return read(page(entry(**changes))).files[0]


def test_page_is_read_completely() -> None:
    assert read(page(entry(), **{"project-status": {"status": "archived"}})) == ProjectPage(
        "demo-pkg",
        5,
        "archived",
        (
            IndexFile(
                filename="demo_pkg-1.0.tar.gz",
                url="https://index.example.org/f/demo_pkg-1.0.tar.gz",
                sha256=SHA256,
                size=None,
                uploaded_at=None,
                requires_python=None,
                yanked=False,
                yanked_reason=None,
                core_metadata=False,
                core_metadata_sha256=None,
            ),
        ),
        '"e"',
        name="Demo.Pkg",
    )


def test_release_fields_are_read_and_normalized_name_is_not_a_display_name() -> None:
    parsed = read(page(name="demo-pkg", versions=["1.0", "2.0a1", "", "v" * 600]))
    assert (parsed.versions, parsed.name) == (("1.0", "2.0a1"), None)
    assert read(page()).versions == ()


@pytest.mark.parametrize("versions", ["1.0", {"1.0": 1}, [1.0]])
def test_page_with_versions_that_are_not_strings_is_rejected(versions: object) -> None:
    with pytest.raises(RefusedError, match=naming("versions")):
        read(page(versions=versions))


@pytest.mark.parametrize(
    ("yanked", "expected"),
    [
        (False, (False, None)),
        (None, (False, None)),
        (True, (True, None)),
        ("broken", (True, "broken")),
        ("", (False, None)),
    ],
)
def test_yanked_is_a_flag_or_a_reason(yanked: bool | str | None, expected: tuple[bool, str | None]) -> None:
    file = read_one(yanked=yanked)
    assert (file.yanked, file.yanked_reason) == expected


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({}, (False, None)),
        ({"core_metadata": False, "data_dist_info_metadata": True}, (False, None)),
        ({"core_metadata": True}, (True, None)),
        ({"core_metadata": {}}, (True, None)),
        ({"core_metadata": {"sha256": SHA256.upper()}}, (True, SHA256)),
        ({"core_metadata": None, "data_dist_info_metadata": {"sha256": SHA256}}, (True, SHA256)),
        ({"data_dist_info_metadata": {"sha256": SHA256}}, (True, SHA256)),
        ({"dist_info_metadata": True}, (True, None)),
    ],
)
def test_core_metadata_is_read_from_old_names(keys: dict[str, object], expected: tuple[bool, str | None]) -> None:
    file = read_one(**keys)
    assert (file.core_metadata, file.core_metadata_sha256) == expected


def test_optional_fields_are_read() -> None:
    file = read_one(size=0, upload_time="2026-11-20T09:43:17.484199Z", requires_python=">=3.8", hashes={})
    assert (file.size, file.uploaded_at, file.requires_python, file.sha256) == (
        0,
        "2026-11-20T09:43:17.484199Z",
        ">=3.8",
        None,
    )
    assert read_one(requires_python="").requires_python is None


@pytest.mark.parametrize(
    "filename", ["../../etc/passwd", "a\\b", "..", "a" * 513, "a\nb", "a\x00b", "", ..., 7], ids=str
)
def test_entry_without_plain_filename_is_skipped_alone(filename: object) -> None:
    parsed = read(page(entry(filename="fine-1.0.zip"), entry(filename=filename)))
    assert [file.filename for file in parsed.files] == ["fine-1.0.zip"]
    [broken] = parsed.broken
    assert broken.problem
    with pytest.raises(RefusedError, match=naming(URL)):  # otherwise the page would count as empty
        read(page(entry(filename=filename)))


def test_file_with_a_broken_entry_has_no_url(subtests: pytest.Subtests) -> None:
    cases = [
        {"url": ...},
        {"url": "https://[::1/a"},
        {"hashes": ...},
        {"hashes": {"sha256": "ab"}},
        {"hashes": {"sha256": "zz" * 32}},
        {"size": -1},
        {"size": "9"},
        {"size": True},
        {"size": 2**63},
        {"upload_time": "yesterday"},
        {"upload_time": 7},
        {"requires_python": 3},
        {"upload_time": "0001-01-01T00:00:00+23:00"},
        {"yanked": 1},
        {"core_metadata": "yes"},
        {"core_metadata": {"sha256": 7}},
    ]
    for changes in cases:
        with subtests.test(changes=changes):
            fine, file = read(page(entry(filename="fine-1.0.zip"), entry(**changes))).files
            assert (fine.filename, file.filename) == ("fine-1.0.zip", "demo_pkg-1.0.tar.gz")
            assert file == IndexFile(
                file.filename, None, None, None, None, None, changes.get("yanked") == 1, None, False, None
            )
            [broken] = read(page(entry(**changes))).broken
            assert broken.name == "demo_pkg-1.0.tar.gz"
            assert json.loads(broken.text)["filename"] == broken.name


def test_upload_time_is_in_utc(subtests: pytest.Subtests) -> None:
    cases = {
        "2026-11-20T09:43:17.484199Z": "2026-11-20T09:43:17.484199Z",
        "2026-11-20T09:43:17.5Z": "2026-11-20T09:43:17.5Z",
        "2026-11-20T09:43:17+00:00": "2026-11-20T09:43:17Z",
        "2026-11-20T09:43:17.250000+05:30": "2026-11-20T04:13:17.250000Z",
        "2026-11-20T00:00:00-08:00": "2026-11-20T08:00:00Z",
        "2026-11-20T09:43:17": "2026-11-20T09:43:17Z",
        "2026-11-20 09:43:17": "2026-11-20T09:43:17Z",
        "2026-11-20T09:43:17.1234567Z": "2026-11-20T09:43:17.123456Z",
        "20261120T094317Z": "2026-11-20T09:43:17Z",
        "2026-11-20": "2026-11-20T00:00:00Z",
    }
    for written, expected in cases.items():
        with subtests.test(written=written):
            assert read_one(upload_time=written).uploaded_at == expected


def test_null_status_means_an_active_project(subtests: pytest.Subtests) -> None:
    for status in (None, {}, {"status": None}, {"status": "active", "reason": "r"}):
        with subtests.test(status=status):
            assert read(page(entry(), **{"project-status": status})).status == "active"


def test_first_entry_of_a_duplicate_file_counts(subtests: pytest.Subtests) -> None:
    address = "https://index.example.org/f/demo_pkg-1.0.tar.gz"
    other, md5 = {"sha256": "cd" * 32}, {"md5": "ef" * 16}
    cases: list[tuple[dict[str, object], dict[str, object], int]] = [
        ({"size": 1}, {"size": 2}, 1),
        ({"size": 1}, {"size": 1, "hashes": other}, 1),
        ({"size": 1, "hashes": {}}, {"size": 1, "hashes": {}, "url": "/x/a.zip"}, 1),
        ({"size": 1, "hashes": md5}, {"size": 1}, 1),
        ({"size": 1, "hashes": md5 | {"sha256": SHA256}}, {"size": 1, "hashes": md5 | other}, 1),
        ({"size": 1}, {"size": 1, "yanked": True}, 1),
        ({"size": 1}, {"size": -1}, 1),
        ({"size": 1}, {"size": 1}, 0),
        ({"size": 1}, {"size": 1, "url": "https://cdn.example.org/a.zip"}, 0),
        ({"size": 1}, {"hashes": md5 | {"sha256": SHA256}, "upload_time": "2026-11-20T09:43:17Z"}, 0),
    ]
    for first, second, broken in cases:
        with subtests.test(first=first, second=second):
            parsed = read(page(entry(**first), entry(**second)))
            assert [(file.size, file.url) for file in parsed.files] == [(1, address)]
            assert len(parsed.broken) == broken


def test_page_may_list_all_files_at_two_urls() -> None:
    names = [f"demo_pkg-{number}.zip" for number in range(30)]
    files = [entry(filename=name, url=f"{host}{name}") for host in ("", "https://cdn.example.org/") for name in names]
    parsed = read(page(*files))
    assert ([file.filename for file in parsed.files], parsed.broken) == (names, ())


def test_pages_that_break_the_protocol_are_rejected(subtests: pytest.Subtests) -> None:
    cases = [
        ([], []),
        (page(meta=...), ["meta"]),
        (page(meta={"api-version": "2.0", "_last-serial": 5}), ["api-version", "2.0"]),
        (page(meta={"_last-serial": 5}), ["api-version"]),
        (page(meta={"api-version": "1.0", "_last-serial": "5"}), ["_last-serial"]),
        (page(meta={"api-version": "1.0"}), ["meta._last-serial", "X-PyPI-Last-Serial"]),
        (page(name="other"), ["other"]),
        (page(name=...), ["name"]),
        (page(files=...), ["files"]),
        (page("demo"), []),
        (page(entry(), *["demo"] * 11), [11, 12]),
        (page(**{"project-status": {"status": 7}}), ["project-status"]),
    ]
    for document, values in cases:
        with subtests.test(document=document), pytest.raises(RefusedError, match=naming(URL, *values)):
            read(document)


def test_serial_in_the_header_is_accepted() -> None:
    assert read(page(meta={"api-version": "1.0"}), header_serial=9).last_serial == 9


@pytest.mark.parametrize("body", [b"", b"{", json.dumps(page(entry())).encode()[:-5], b"\xff"])
def test_broken_json_is_transient(body: bytes) -> None:
    with pytest.raises(TransientError):
        read(body)


def test_url_is_joined_with_the_page_url(subtests: pytest.Subtests) -> None:
    cases = [
        "https://files.example.org/packages/ab/cd/demo_pkg-1.0.tar.gz",
        "http://files.example.org/a%20b/x~1+2!3.whl",
        "https://user:secret@files.example.org/a.whl",
        "https://files.example.org:8080/a.whl?token=1#sha256=ab",
        "https://files.example.org/a/../b/./c.whl",
        "https://files.example.org/a;b/c",
        "https://files.example.org/a?",
        "https://files.example.org/a#",
        "https://files.example.org",
        "//files.example.org/a.whl",
        "HTTPS://files.example.org/a.whl",
        " https://files.example.org/a.whl\t",
        "a.whl",
    ]
    for url in cases:
        with subtests.test(url=url):
            assert read_one(url=url).url == redact(urljoin(URL, url))


def test_blanks_in_urls_are_quoted() -> None:
    for url, quoted in (("/a b/c d.whl", "a%20b/c%20d.whl"), ("/a\u00a0b.whl?x= 1", "a%C2%A0b.whl?x=%201")):
        found = read_one(url=url).url
        assert found == f"https://index.example.org/{quoted}"
        assert split_fetchable(found) == ("https", "index.example.org", "")
    blank_in_host = read_one(url="https://a b.example.org/c.whl").url
    with pytest.raises(RefusedError):
        split_fetchable(str(blank_in_host))


def test_rendered_metadata_do_not_count_as_those_of_the_file():
    for is_rendered, expected in ((True, (False, None)), (False, (True, SHA256)), ("yes", (True, SHA256))):
        whole = entry(core_metadata={"sha256": SHA256}) | {RENDERED_METADATA_KEY: is_rendered}
        [file] = read(page(whole)).files
        assert (file.core_metadata, file.core_metadata_sha256) == expected
