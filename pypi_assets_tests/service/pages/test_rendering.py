import pytest
from markupsafe import Markup

from pypi_assets.service.pages import rendering
from pypi_assets.service.pages.rendering import HEADERS, data_address, is_local_page, page_address, render, shown
from pypi_assets_tests.hostile_index import HOSTILE
from pypi_assets_tests.service.pages.documents import parsed

FRAME = {"phrase": "Not Found", "title": "None", "prefix": "", "ways": (), "is_missing": True}


def problem(detail: str) -> dict[str, object]:
    return {
        "status": 404,
        "title": "None",
        "detail": detail,
        "parameter": detail,
        "accepts": detail,
        "hints": [detail],
        "suggestions": [{"kind": "project", "name": detail}],
    }


def test_text_is_one_bounded_line_without_control_characters():
    assert shown("a\n b\x1b\u202ec") == "a b\ufffd\ufffdc"
    assert len(str(shown("x" * 100_000))) == 500
    assert shown(Markup("<b>\n</b>")) == Markup("<b>\n</b>")
    assert shown(7) == 7


def test_hostile_text_is_inert_everywhere():
    html = render(
        "problem.html",
        {"problem": {"type": "/docs#x", **problem(HOSTILE)}, **FRAME, "text": HOSTILE, "request_id": HOSTILE},
    )
    document = parsed(html.decode())
    assert document.faults == []
    assert "<script>" in document.text
    assert not {"\x1b", "\u202e", "\x07", "\x00"} & set(html.decode())


def test_policy_forbids_inline_scripts_and_external_content():
    [policy] = [value for name, value in HEADERS if name == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy


def test_page_paths_end_with_slash_and_data_paths_with_json():
    assert page_address("", "import", "flask.json") == "/import/flask.json/"
    assert data_address("", "import", "flask.json") == "/import/flask.json.json"
    assert data_address("/at/7.9", "import", "flask") == "/at/7.9/import/flask.json"
    assert (page_address(""), data_address("")) == ("/", "/index.json")


def test_names_are_percent_encoded():
    assert page_address("", "release", "a", "1.0+é <x>") == "/release/a/1.0%2B%C3%A9%20%3Cx%3E/"
    assert page_address("", "search", q="a&b=c", page=None) == "/search/?q=a%26b%3Dc"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a\0b", "é" * 1_000])
def test_text_unfit_for_a_path_has_no_address(name: str):
    assert page_address("", "command", name) is None
    assert data_address("", "command", name) is None


LOCAL = [
    ("/import/yaml/", True),
    ("/search/?q=a%20b", True),
    ("", False),
    ("import/yaml/", False),
    ("//elsewhere.invalid/", False),
    ("https://elsewhere.invalid/", False),
    ("/\\elsewhere.invalid", False),
    ("/a\r\nSet-Cookie: b", False),
    ("/a b", False),
    ("/" + "x" * 5_000, False),
    ("/é", False),
]


def test_only_paths_of_the_service_are_local(subtests: pytest.Subtests):
    for path, expected in LOCAL:
        with subtests.test(path=path, expected=expected):
            assert is_local_page(path) is expected


def test_counts_and_sizes():
    assert [rendering.counted(count, "file") for count in (0, 1, 1234)] == ["0 files", "1 file", "1,234 files"]
    assert rendering.counted(2, "project installs", "projects install") == "2 projects install"
    sizes = (0, 999, 1_000, 9_960, 1_234_567, 5 * 10**15)
    assert [rendering.size_in_words(size) for size in sizes] == [
        "0 bytes",
        "999 bytes",
        "1.0 kB",
        "10 kB",
        "1.2 MB",
        "5000 TB",
    ]


@pytest.mark.parametrize(
    ("time", "day"),
    [
        ("2026-03-03T12:00:00Z", "2026-03-03"),
        ("2026-03-03", "2026-03-03"),
        ("2026-13-03", ""),
        ("<script>", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_day_of_a_time(time: str | None, day: str):
    assert rendering.day(time) == day


def test_times():
    assert rendering.unix_seconds("1970-01-02") == 86_400
    assert rendering.unix_seconds("1970-01-01T01:00:00+01:00") == 0


def test_versions_are_shortened():
    assert [rendering.version_span(versions) for versions in ([], ["1"], ["1", "2"])] == [
        "",
        "1",
        "1 to 2 (2 versions)",
    ]


def test_sentences_begin_with_a_capital_except_for_names():
    assert [rendering.sentence(text) for text in ("no project a", "a.b is new", "")] == [
        "No project a",
        "a.b is new",
        "",
    ]
