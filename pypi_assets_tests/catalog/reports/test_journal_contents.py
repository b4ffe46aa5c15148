"""The content stream: the content of each file, and the gains and losses of each release."""

from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.reports.journal_format import JournalStream, Record
from pypi_assets.catalog.reports.release_comparisons import MOST_ROOTS
from pypi_assets.distributions.record import START_UP_CODE, DistributionKind, DistributionRecord
from pypi_assets_tests.journal.model_journal import seal_complete, stream_records
from pypi_assets_tests.small_catalog import SmallCatalog


def contents(small: SmallCatalog, start: int, end: int, *kinds: str) -> list[Record]:
    with small.catalog.read_once() as connection:
        found = list(stream_records(connection, SerialRange(start, end), JournalStream.CONTENT))
    return [record for record in found if not kinds or record["kind"] in kinds]


def test_file_that_becomes_live_has_its_content(small: SmallCatalog) -> None:
    small.add(3, "demo", "1.0", "demo-1.0.tar.gz", modules=("demo", "demo.a"), requires_dist=("base>=1",))
    small.add(4, "demo", "1.0", "demo-1.0.zip", modules=None, requires_dist=None)
    small.yank(5, "demo-1.0.tar.gz")
    small.remove(6, "demo-1.0.tar.gz")
    small.show_again(7, "demo-1.0.tar.gz")
    small.complete(10)
    found = contents(small, 0, 10, "file read", "file not read")
    assert [(record["serial"], record["kind"], record["filename"], record["cause"]) for record in found] == [
        (3, "file read", "demo-1.0.tar.gz", "add file"),
        (4, "file not read", "demo-1.0.zip", "add file"),
        (7, "file read", "demo-1.0.tar.gz", "clear quarantine"),
    ]
    assert (found[1]["outcome"], found[1]["error_kind"]) == ("error", "corrupt archive")
    small.catalog.close()


def test_late_read_follows_the_sealed_range_alone(small: SmallCatalog) -> None:
    small.add(3, "demo", "1.0", "demo-1.0.tar.gz", modules=None, requires_dist=None)
    small.complete(10)
    seal_complete(small.catalog)
    assert small.read("demo-1.0.tar.gz", ("demo",), ()) == 11
    small.remove(11, "demo-1.0.tar.gz")
    small.show_again(11, "demo-1.0.tar.gz")  # becomes live where the read is logged: one record has both
    small.complete(20)
    found = contents(small, 10, 20, "file read", "file not read")
    assert [(record["serial"], record["of_serial"], record["cause"]) for record in found] == [(11, 3, "read late")]
    small.catalog.close()


def test_late_read_is_not_repeated_in_a_sealed_range_written_later(small: SmallCatalog) -> None:
    small.add(3, "demo", "1.0", "demo-1.0.tar.gz", modules=None, requires_dist=None)
    small.add(4, "demo", "1.0", "demo-1.0.zip", modules=("demo",))
    small.complete(10)
    seal_complete(small.catalog)
    assert small.read("demo-1.0.tar.gz", ("demo",), ()) == 11
    small.complete(20)
    for start, end, expected in ((0, 10, [(4, "demo-1.0.zip")]), (10, 20, [(11, "demo-1.0.tar.gz")])):
        found = contents(small, start, end, "file read", "file not read")
        assert [(record["serial"], record["filename"]) for record in found] == expected
    small.catalog.close()


def test_release_is_compared_with_its_predecessor_by_version(small: SmallCatalog) -> None:
    small.add(3, "demo", "1.9", "demo-1.9.tar.gz", modules=("demo", "old"), requires_dist=("base",))
    small.add(4, "demo", "1.10", "demo-1.10.tar.gz", modules=("demo", "new"), requires_dist=("base", "more"))
    small.add(5, "demo", "1.10", "demo-1.10.zip", modules=("demo", "new"), requires_dist=("base", "more"))
    small.complete(10)
    [first] = contents(small, 0, 10, "release compared")
    assert (first["serial"], first["version"], first["against"]) == (4, "1.10", "1.9")
    assert first["gained"] == {"modules": ["new"], "requirements": ["more"], "commands": ["new"]}
    assert first["lost"] == {"modules": ["old"], "commands": ["old"]}
    assert "filename" not in first
    small.catalog.close()


def test_start_up_code_is_compared_by_notes(small: SmallCatalog) -> None:
    """The releases do not differ otherwise; a start-up file without code does not count."""
    codes = {"1.0": [], "1.1": ["demo.pth"], "1.2": ["demo.pth"], "1.3": ["demo.start: demo:main"], "1.4": []}
    records = []
    for serial, (version, code) in enumerate(codes.items(), 3):
        filename = f"demo-{version}-py3-none-any.whl"
        notes = ("installs scripts: run", *(f"{START_UP_CODE} {each}" for each in code))
        small.add(serial, "demo", version, filename)
        paths = ("demo.pth",)
        kind = DistributionKind.WHEEL
        records.append(DistributionRecord(filename, kind, "demo", version, start_up_paths=paths, notes=notes))
    small.store(records)
    small.complete(10)
    found = contents(small, 0, 10, "release compared")
    assert [(record["version"], record["gained"], record["lost"]) for record in found] == [
        ("1.1", {"start_up": ["demo.pth"]}, {}),
        ("1.3", {"start_up": ["demo.start: demo:main"]}, {"start_up": ["demo.pth"]}),
        ("1.4", {}, {"start_up": ["demo.start: demo:main"]}),
    ]
    small.catalog.close()


def test_new_module_providers_are_marked_if_first(small: SmallCatalog) -> None:
    small.add(3, "first", "1.0", "first-1.0.tar.gz", modules=("shared.a",))
    small.add(4, "second", "1.0", "second-1.0.tar.gz", modules=("shared", "own"))
    small.add(5, "second", "2.0", "second-2.0.tar.gz", modules=("shared", "own"))
    small.complete(10)
    found = contents(small, 0, 10, "new provider")
    assert [(record["serial"], record["project"], record["module"], record["is_first"]) for record in found] == [
        (3, "first", "shared", True),
        (4, "second", "own", True),
        (4, "second", "shared", False),
    ]
    small.catalog.close()


def test_records_are_bounded_for_many_top_level_names(small: SmallCatalog) -> None:
    small.add(3, "demo", "1.0", "demo-1.0.tar.gz", modules=tuple(f"module{n}" for n in range(MOST_ROOTS + 5)))
    small.complete(10)
    assert len(contents(small, 0, 10, "new provider")) == MOST_ROOTS
    small.catalog.close()
