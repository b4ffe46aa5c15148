from markupsafe import Markup

from pypi_assets.service.pages.rendering import HEADERS, render, shown
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


def test_text_is_on_one_line_without_control_characters_and_bounded():
    assert shown("a\n b\x1b\u202ec") == "a b\ufffd\ufffdc"
    assert len(str(shown("x" * 100_000))) == 500
    assert shown(Markup("<b>\n</b>")) == Markup("<b>\n</b>")
    assert shown(7) == 7


def test_hostile_text_is_inert_wherever_it_stands():
    html = render(
        "problem.html",
        {"problem": {"type": "/docs#x", **problem(HOSTILE)}, **FRAME, "text": HOSTILE, "request_id": HOSTILE},
    )
    document = parsed(html.decode())
    assert document.faults == []
    assert "<script>" in document.text
    assert not {"\x1b", "\u202e", "\x07", "\x00"} & set(html.decode())


def test_no_script_may_run_and_nothing_comes_from_elsewhere():
    [policy] = [value for name, value in HEADERS if name == "Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
