"""Hostile text is made inert for each kind of output, and the checks for live text detect it."""

import subprocess
import sys

import pytest

from pypi_assets.sanitize import (
    LONGEST_NOTICE,
    inert_csv,
    inert_line,
    inert_lines,
    inert_markdown,
    inert_markdown_cell,
    inert_notice,
)
from pypi_assets_tests.hostile_index import BEACON, CONTROLS, HOSTILE, live_in_csv, live_in_line, live_in_markdown

CODE = """
import logging, sys
from pypi_assets.sanitize import make_logs_inert
make_logs_inert()
make_logs_inert()
text = sys.stdin.read()
logging.getLogger("library").warning("seen: %s", text)
try:
    raise ValueError(text)
except ValueError:
    logging.exception("failed")
raise KeyError(text) from RuntimeError(text)
"""


def test_library_logs_and_tracebacks_are_inert() -> None:
    done = subprocess.run(
        [sys.executable, "-X", "utf8", "-c", CODE], input=HOSTILE, encoding="utf-8", capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert live_in_line(done.stderr) == []
    for part in ("seen: =cmd", "ERROR:root:failed", "ValueError: =cmd", "RuntimeError: =cmd", "KeyError: "):
        assert part in done.stderr


TEXTS = [
    HOSTILE,
    CONTROLS,
    "http://x\\|![](//beacon.invalid/p.png)",
    "![](//beacon.invalid/p.png)",
    "\\![](x)",
    "`` a`b ![](x)",
    "http://x` ![](y) `",
    "http://a\\\\|b\\|c|d",
    "[a]: //beacon.invalid",
    "<https://beacon.invalid>",
    "me@beacon.invalid",
    "WWW.beacon.invalid",
    "# heading",
    "1. item",
    "10) item",
    "- item",
    "+ item",
    "* item",
    "> quote",
    "=== x",
    "---",
    "~~x~~ __b__ _i_ **b**",
    "[^1] &copy; <b>",
    "| a | b |",
    "",
]


def test_sanitized_texts_are_inert(subtests: pytest.Subtests) -> None:
    for text in TEXTS:
        with subtests.test(text=text):
            assert live_in_line(inert_line(text)) == []
            assert "\n" not in inert_line(text)
            assert live_in_line(inert_lines(text)) == []
            assert live_in_markdown(inert_markdown(text)) == []
            assert live_in_markdown(inert_markdown(f"the index failed: {text}")) == []
            cell = inert_markdown_cell(text, 300)
            assert live_in_markdown(f"| a | b |\n| --- | --- |\n| {cell or 'x'} | 1 |") == []
            assert live_in_csv(iter([inert_csv(text)])) == []
            assert live_in_line(inert_notice(text)) == []
            assert not {"://", "@everyone", "<!"} & {
                part for part in ("://b", "@everyone", "<!") if part in inert_notice(text)
            }


@pytest.mark.parametrize("text", ["plain text, with 10.5 %", "a (b) c: d; e-f/g", "snake_case", "caf\u00e9 \u4e2d"])
def test_harmless_text_is_unchanged(text: str) -> None:
    assert {inert(text) for inert in (inert_line, inert_lines, inert_csv, inert_markdown, inert_notice)} == {text}


CELLS = [
    ("[here](javascript:alert(1))", r"\[here\](javascript:alert(1))"),
    ("<img src=x onerror=alert(1)>", r"\<img src=x onerror=alert(1)\>"),
    ("&lt;b&gt;", r"\&lt;b\&gt;"),
    ("**bold** ~~gone~~ `code`", r"\*\*bold\*\* \~\~gone\~\~ \`code\`"),
    ("pkg.__init__", r"pkg.\_\_init\_\_"),
    ("snake_case", "snake_case"),
    ("![](https://evil.example.org/pixel.png)", "`![](https://evil.example.org/pixel.png)`"),
    ("www.example.org", "`www.example.org`"),
    ("demo @ https://example.org/a|b", r"`demo @ https://example.org/a\|b`"),
    ("`` a@b.example", "``` `` a@b.example ```"),
    ("\\", "\\\\"),
    ("left\u202eright\x1b[31m", "left\ufffdright\ufffd\\[31m"),
    ("", ""),
]


def test_markdown_cells_are_escaped(subtests: pytest.Subtests) -> None:
    for text, shown in CELLS:
        with subtests.test(text=text, shown=shown):
            assert inert_markdown_cell(text, 300) == shown


def test_long_cells_are_truncated() -> None:
    assert inert_markdown_cell("x" * 300, 300) == "x" * 300
    assert inert_markdown_cell("x" * 301, 300) == "x" * 299 + "…"
    assert len(inert_markdown_cell(" " * 10_000 + "x", 300)) <= 300


def test_lines_keep_their_indentation() -> None:
    assert inert_lines("a\n    b\x07\r\n\tc") == "a\n    b\ufffd\nc"


def test_notice_mentions_nobody_and_is_limited() -> None:
    assert inert_notice("<!channel> @here https://x.example me@x.example") == (
        "< !channel> @ here https:// x.example me@ x.example"
    )
    assert len(inert_notice("x" * 100_000)) == LONGEST_NOTICE


def test_checks_detect_live_text() -> None:
    """Otherwise, the other tests would prove nothing."""
    table = "| a | b |\n| --- | --- |\n"
    live = [
        f"{table}| `http://x\\\\|![](//{BEACON}/p.png)` | 1 |",
        f"{table}| a | http://{BEACON} |",
        f"{table}| a | [b](c) |\n\n![](x)",
        "see ![](x)",
        f"see {BEACON} at https://{BEACON}",
        "# heading",
        "- item",
        "<b>x</b>",
        "a\x1bb",
        "a\u202eb",
    ]
    assert [text for text in live if not live_in_markdown(text)] == []
    assert live_in_csv(iter(["ok", "=1", " @x"])) == ["=1", " @x"]
    assert live_in_markdown(f"{table}| `http://x` | see `pypi-assets status` |\n\nand 3 more. `x`") == []
