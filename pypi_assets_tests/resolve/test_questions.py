from dataclasses import replace

import pytest

from pypi_assets.resolve.questions import Control, ResolutionQuestion, ResolveError, Wanted, parse_wanted
from pypi_assets_tests.naming import naming
from pypi_assets_tests.resolve.made_index import LINUX


def test_requirement_is_parsed():
    wanted = parse_wanted("Some.Demo[Fast_One,a]>=2 ; python_version > '3'")
    assert (wanted.project, wanted.extras, str(wanted.specifier)) == ("some-demo", ("a", "fast-one"), ">=2")
    assert str(wanted.marker) == 'python_version > "3"'
    assert wanted.url is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("demo>=", ["demo>="]),
        ("", ["''"]),
        ("demo>=" + "1" * 5_000, ["5,006", "4,000"]),
        ("demo; " + "(" * 3_000 + "a", ["demo; ((("]),
        ("d" * 4_001, ["4,001", "4,000"]),
        ("demo\0", [r"demo\x00"]),
    ],
)
def test_invalid_requirement_is_rejected_in_one_line(text, values):
    with pytest.raises(ResolveError, match=naming(*values)) as raised:
        parse_wanted(text)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400


def test_format_control_prefers_names_and_later_options():
    both = Control().with_yes([":all:"]).with_no(["Demo"])
    assert (both.of("six"), both.of("demo")) == (True, False)
    assert both.with_yes(["demo"]).of("demo") is True
    assert both.with_no([":all:"]) == Control(no=frozenset({":all:"}))
    assert both.with_yes([":none:"]) == Control(no=frozenset({"demo"}))
    assert Control().with_yes(["six", ":none:", "demo"]) == Control(yes=frozenset({"demo"}))
    assert (Control.for_all(True).of("six"), Control.for_all(False).of("six")) == (True, None)


def test_allowed_hashes_come_from_applicable_lines():
    def line(text: str, *hashes: str) -> Wanted:
        return replace(parse_wanted(text), hashes=frozenset(hashes))

    lines = (
        line("demo==1; python_version < '3.9'", "a"),
        line("demo==2; python_version >= '3.9'", "b", "c"),
        line("six", "d"),
        line("other"),
    )
    question = ResolutionQuestion(lines, LINUX, (line("demo<3", "c", "d"),))
    found = {name: question.conditions_of(name).hashes for name in ("demo", "six", "other")}
    assert found == {"demo": {"c"}, "six": {"d"}, "other": None}
