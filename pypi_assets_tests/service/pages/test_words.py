import pytest

from pypi_assets.service.pages import words


def test_counts_and_sizes():
    assert [words.counted(count, "file") for count in (0, 1, 1234)] == ["0 files", "1 file", "1,234 files"]
    assert words.counted(2, "project installs", "projects install") == "2 projects install"
    sizes = (0, 999, 1_000, 9_960, 1_234_567, 5 * 10**15)
    assert [words.size_in_words(size) for size in sizes] == [
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
def test_the_day_of_a_time(time: str | None, day: str):
    assert words.day(time) == day


def test_times():
    assert words.unix_seconds("1970-01-02") == 86_400
    assert words.unix_seconds("1970-01-01T01:00:00+01:00") == 0


def test_versions_are_shortened():
    assert [words.version_span(some) for some in ([], ["1"], ["1", "2"])] == ["", "1", "1 to 2 (2 versions)"]


def test_sentences_begin_with_a_capital_unless_a_name_does():
    assert [words.sentence(text) for text in ("no project a", "a.b is new", "")] == ["No project a", "a.b is new", ""]
