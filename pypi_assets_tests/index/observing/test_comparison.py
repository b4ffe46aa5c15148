"""The changes that are accepted from shown pages, and the events that follow."""

from dataclasses import replace

import pytest

from pypi_assets.index.models import IndexFile
from pypi_assets.index.observing.comparison import CALM, MOST_GONE, Compared, KnownPage, compare, version_of
from pypi_assets.index.observing.shown_pages import ShownFile, ShownPage

WHEEL, OTHER, SDIST = "demo-1.0-py3-none-any.whl", "demo-1.0-cp39-none-any.whl", "demo-1.0.tar.gz"


def file(name: str, content: str = "a", *, yanked: bool = False) -> ShownFile:
    shown = IndexFile(name, f"https://h/{name}", content * 64, None, None, None, yanked, None, False, None)
    return ShownFile(shown, {"sha256": content * 64})


def page(*files: ShownFile) -> ShownPage:
    return ShownPage("demo", files)


class Looking:
    """A series of polls of one project, ten seconds apart. Confirmation needs at least five seconds between polls."""

    def __init__(self, *first: ShownFile) -> None:
        self.known, self.now = KnownPage("demo"), 0.0
        self.look(page(*first))

    def look(self, shown: ShownPage | None) -> list[tuple[str | None, str]]:
        comparison = self.compared(shown)
        return [(event.version, event.action) for event in comparison.events]

    def compared(self, shown: ShownPage | None) -> Compared:
        self.now += 10.0
        comparison = compare(self.known, shown, self.now, 5.0)
        self.known = comparison.known
        return comparison

    @property
    def shown(self) -> set[tuple[str, str | None, bool]]:
        files = self.known.project_page("demo", 1).files
        return {(file.filename, file.sha256 and file.sha256[0], file.yanked) for file in files}


def test_first_poll_accepts_everything() -> None:
    comparison = compare(KnownPage("demo"), page(file(WHEEL), file(SDIST, yanked=True)), 0.0, 5.0)
    assert [(event.version, event.action) for event in comparison.events] == [
        (None, "create"),
        ("1.0", f"add py3 file {WHEEL}"),
        ("1.0", f"add source file {SDIST}"),
        ("1.0", f"yank file {SDIST}"),
    ]
    assert not comparison.is_waiting


def test_content_without_upload_time_has_its_first_sighting() -> None:
    def seen(looking: Looking) -> dict[str, str | None]:
        return {file.filename: file.first_seen_at for file in looking.known.project_page("demo", 1).files}

    dated = replace(file(OTHER).file, uploaded_at="2026-01-02T03:04:05Z")
    looking = Looking(file(WHEEL), ShownFile(dated, {}))
    first = {WHEEL: "1970-01-01T00:00:10Z", OTHER: None}
    assert seen(looking) == first
    both = [file(WHEEL), ShownFile(dated, {})]
    looking.look(page(*both, file(SDIST)))
    assert seen(looking) == first | {SDIST: "1970-01-01T00:00:20Z"}
    looking.look(page(*both))
    looking.look(page(*both))
    looking.look(page(*both, file(SDIST)))
    assert SDIST not in seen(looking)
    for _ in range(4):  # it is back with the same bytes as before
        looking.look(page(*both, file(SDIST)))
    assert seen(looking)[SDIST] == "1970-01-01T00:00:20Z"
    looking.look(page(file(WHEEL, "b"), *both[1:], file(SDIST)))
    assert seen(looking)[WHEEL] == "1970-01-01T00:01:40Z"
    stated = replace(file(WHEEL, "b").file, uploaded_at="2026-01-02T03:04:05Z")
    looking.look(page(ShownFile(stated, {"sha256": "b" * 64}), *both[1:], file(SDIST)))
    assert seen(looking)[WHEEL] is None


def test_new_file_counts_immediately_and_unchanged_page_adds_nothing() -> None:
    looking = Looking(file(WHEEL))
    assert looking.look(page(file(WHEEL), file(SDIST))) == [("1.0", f"add source file {SDIST}")]
    assert looking.look(page(file(WHEEL), file(SDIST))) == []


def test_removal_counts_after_two_matching_polls() -> None:
    looking = Looking(file(WHEEL), file(SDIST))
    assert looking.look(page(file(WHEEL))) == []
    assert (SDIST, "a", False) in looking.shown
    assert looking.look(page(file(WHEEL))) == [("1.0", f"remove file {SDIST}")]
    assert looking.shown == {(WHEEL, "a", False)}


def test_polls_too_close_together_do_not_confirm() -> None:
    looking = Looking(file(WHEEL), file(SDIST))
    looking.look(page(file(WHEEL)))
    comparison = compare(looking.known, page(file(WHEEL)), looking.now + 4.9, 5.0)
    assert comparison.events == ()
    assert comparison.is_waiting


def test_contradicting_poll_ends_the_wait() -> None:
    looking = Looking(file(WHEEL), file(SDIST))
    looking.look(page(file(WHEEL)))
    assert not looking.compared(page(file(WHEEL), file(SDIST))).is_waiting
    assert looking.look(page(file(WHEEL))) == []


def test_all_files_of_a_release_are_removed_by_one_event() -> None:
    looking = Looking(file(WHEEL), file(SDIST), file("demo-2.0.tar.gz"))
    looking.look(page(file("demo-2.0.tar.gz")))
    assert looking.look(page(file("demo-2.0.tar.gz"))) == [("1.0", "remove release")]


def test_missing_and_returning_pages_count_after_two_polls() -> None:
    looking = Looking(file(WHEEL), file(SDIST))
    assert looking.look(None) == []
    assert looking.look(None) == [(None, "remove project")]
    assert looking.look(None) == []
    assert looking.look(page(file(WHEEL), file(SDIST))) == []
    assert looking.look(page(file(WHEEL), file(SDIST))) == [
        (None, "create"),
        ("1.0", f"add py3 file {WHEEL}"),
        ("1.0", f"add source file {SDIST}"),
    ]
    assert looking.known.doubts == 1


def test_removed_page_with_new_files_counts_immediately() -> None:
    looking = Looking(file(WHEEL))
    looking.look(None)
    looking.look(None)
    assert looking.look(page(file(SDIST))) == [(None, "create"), ("1.0", f"add source file {SDIST}")]


def test_changed_bytes_are_the_next_generation() -> None:
    looking = Looking(file(WHEEL))
    assert looking.look(page(file(WHEEL, "b"))) == [("1.0", f"add py3 file {WHEEL}")]
    assert looking.known.files[WHEEL].file.generation == 2
    assert looking.look(page(file(WHEEL, "a"))) == []
    assert looking.shown == {(WHEEL, "b", False)}
    assert looking.look(page(file(WHEEL, "a"))) == [("1.0", f"add py3 file {WHEEL}")]
    assert looking.known.files[WHEEL].file.generation == 3


def test_removed_file_with_new_bytes_counts_immediately() -> None:
    looking = Looking(file(WHEEL), file(SDIST))
    looking.look(page(file(SDIST)))
    looking.look(page(file(SDIST)))
    assert looking.look(page(file(SDIST), file(WHEEL, "b"))) == [("1.0", f"add py3 file {WHEEL}")]
    assert looking.known.files[WHEEL].file.generation == 2


def test_first_yank_counts_immediately_and_unyank_needs_confirmation() -> None:
    looking = Looking(file(WHEEL), file(SDIST))
    yanked = page(file(WHEEL, yanked=True), file(SDIST, yanked=True))
    assert looking.look(yanked) == [("1.0", "yank release")]
    plain = page(file(WHEEL), file(SDIST))
    assert looking.look(plain) == []
    assert looking.look(plain) == [("1.0", "unyank release")]
    assert looking.known.yanked_releases == []


def test_file_added_to_a_yanked_release_is_yanked() -> None:
    looking = Looking(file(WHEEL, yanked=True))
    assert looking.known.yanked_releases == ["1.0"]
    assert looking.look(page(file(WHEEL, yanked=True), file(SDIST, yanked=True))) == [
        ("1.0", f"add source file {SDIST}")
    ]
    assert looking.look(page(file(WHEEL, yanked=True), file(SDIST, yanked=True), file(OTHER))) == [
        ("1.0", f"add cp39 file {OTHER}"),
        ("1.0", f"unyank file {OTHER}"),
    ]


def test_flapping_adds_a_bounded_number_of_events() -> None:
    """Use the worst case: two pages that alternate exactly as often as they can be confirmed."""
    both, one = page(file(WHEEL), file(SDIST)), page(file(WHEEL))
    looking, events, looks = Looking(file(WHEEL), file(SDIST)), 0, 0
    while looks < 10_000:
        for shown in (one, both):
            for _ in range(2 << looking.known.doubts):
                events += len(looking.look(shown))
                looks += 1
    assert looking.known.doubts == 5
    assert events <= 10 + looks / 64


def test_alternating_pages_add_nothing() -> None:
    both, one = page(file(WHEEL), file(SDIST)), page(file(WHEEL))
    looking = Looking(file(WHEEL), file(SDIST))
    assert [event for shown in [one, both] * 500 for event in looking.look(shown)] == []


def test_doubt_ends_after_unchanged_polls() -> None:
    looking = Looking(file(WHEEL))
    for shown in (None, None, page(file(WHEEL)), page(file(WHEEL))):
        looking.look(shown)
    assert looking.known.doubts == 1
    for _ in range(CALM):
        looking.look(page(file(WHEEL)))
    assert looking.known.doubts == 0


def test_broken_entry_keeps_known_facts() -> None:
    looking = Looking(file(WHEEL))
    broken = ShownFile(replace(file(WHEEL).file, url=None, sha256=None))
    assert looking.look(page(broken)) == []
    assert looking.shown == {(WHEEL, "a", False)}


@pytest.mark.parametrize(
    ("before", "after", "is_replaced"),
    [
        ({"md5": "1"}, {"md5": "2"}, True),
        ({"md5": "1"}, {"md5": "1", "sha256": "2"}, False),
        ({"md5": "1"}, {"sha256": "2"}, False),
        ({}, {"sha256": "2"}, False),
        ({"sha256": "A"}, {"sha256": "a"}, False),
        ({"sha256": 7}, {"sha256": None}, False),
    ],
)
def test_contents_are_compared_by_a_common_hash(
    before: dict[str, str], after: dict[str, str], is_replaced: bool
) -> None:
    plain = replace(file(SDIST).file, sha256=None)
    looking = Looking(ShownFile(plain, before))
    assert bool(looking.look(page(ShownFile(plain, after)))) == is_replaced


def test_contents_without_hashes_are_compared_by_size_and_time() -> None:
    plain = replace(file(SDIST).file, sha256=None, size=1)
    looking = Looking(ShownFile(plain))
    assert looking.look(page(ShownFile(replace(plain, size=None)))) == []
    assert looking.look(page(ShownFile(replace(plain, size=2)))) == [("1.0", f"add source file {SDIST}")]


def test_memory_of_removed_files_is_bounded() -> None:
    names = [f"demo-{number}.tar.gz" for number in range(MOST_GONE + 100)]
    looking = Looking(*map(file, names))
    looking.look(page())
    looking.look(page())
    assert len(looking.known.files) == MOST_GONE


@pytest.mark.parametrize(
    ("filename", "version"),
    [
        ("demo_pkg-1.0-py3-none-any.whl", "1.0"),
        ("Demo.Pkg-1.0.0.tar.gz", "1.0.0"),
        ("demo-pkg-1.0-2.zip", "1.0-2"),
        ("other-1.0.zip", None),
        ("demo-pkg.zip", None),
        ("demo-pkg-1.0.exe", None),
        ("demo_pkg-1.0-py3.8.egg", "1.0"),
        ("demo-pkg-1.0.tgz", "1.0"),
        ("demo-pkg-1.0.tar.Z", "1.0"),
        ("demo-pkg-1.0.TXZ", "1.0"),
        ("demo-pkg-1.0.tar.lzma", "1.0"),
    ],
)
def test_versions_of_filenames(filename: str, version: str | None) -> None:
    assert version_of(filename, "demo-pkg") == version
    assert version_of("demo_pkg-1.0.0.tar.gz", "demo-pkg", ["1.0"]) == "1.0"
