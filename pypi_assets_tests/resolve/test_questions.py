import pytest

from pypi_assets.resolve.questions import ResolveError, parse_wanted


def test_a_requirement_is_taken_apart():
    wanted = parse_wanted("Some.Demo[Fast_One,a]>=2 ; python_version > '3'")
    assert (wanted.project, wanted.extras, str(wanted.specifier)) == ("some-demo", ("a", "fast-one"), ">=2")
    assert str(wanted.marker) == 'python_version > "3"'
    assert wanted.url is None


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("demo>=", "'demo>=' is no requirement"),
        ("", "'' is no requirement"),
        ("demo>=" + "1" * 5_000, "and a requirement at most 4,000"),
        ("demo; " + "(" * 3_000 + "a", "is no requirement"),
        ("d" * 4_001, "has 4,001 characters, and a requirement at most 4,000"),
        ("demo\0", "is no requirement"),
    ],
)
def test_what_is_no_requirement_is_refused_in_one_line(text, error):
    with pytest.raises(ResolveError, match=error.replace("(", r"\(")) as raised:
        parse_wanted(text)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 400
