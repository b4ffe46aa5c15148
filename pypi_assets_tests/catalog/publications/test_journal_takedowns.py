"""What was taken down is stored once, and a writer that does not know of it yet records nothing."""

from pypi_assets.catalog.ledger.epochs import NoticeKind, notices_in
from pypi_assets.catalog.ledger.serial_range import SerialRange
from pypi_assets.catalog.publications.journal_segments import (
    SegmentFile,
    Takedown,
    add_takedown,
    all_takedowns,
    finish_takedowns,
    lift_takedown,
    newest_takedown,
    record_segment,
)
from pypi_assets_tests.small_catalog import small_catalog


def test_a_takedown_is_stored_finished_announced_and_lifted(tmp_path) -> None:
    small = small_catalog(tmp_path)
    small.complete(10)
    catalog = small.catalog
    first = add_takedown(catalog, Takedown(0, 0.0, "x", "demo", filename="demo-1.tar.gz", hides_name=True))
    second = add_takedown(catalog, Takedown(0, 0.0, "y", None, stream="index", serial=3, ordinal=0))
    file = SegmentFile("observed", 1, SerialRange(0, 10), "name", 1, 10, 5, "f" * 64)
    assert record_segment(catalog, file, first.id) is None
    assert record_segment(catalog, file, second.id) == file
    finish_takedowns(catalog, first.id, 7)
    with catalog.read() as connection:
        found = all_takedowns(connection)
        assert newest_takedown(connection) == second.id
        [notice] = notices_in(connection, SerialRange(0, 100))
    assert [(one.project, one.stream, one.done_at is None) for one in found] == [
        ("demo", None, False),
        (None, "index", True),
    ]
    assert (notice.kind, notice.of_serial) == (NoticeKind.TAKEN_DOWN, 7)
    assert lift_takedown(catalog, first.id)
    assert not lift_takedown(catalog, first.id)
    catalog.close()


def test_the_id_of_a_lifted_takedown_is_given_to_no_other(tmp_path) -> None:
    small = small_catalog(tmp_path)
    small.complete(10)
    lifted = add_takedown(small.catalog, Takedown(0, 0.0, "x", "demo"))
    assert lift_takedown(small.catalog, lifted.id)
    added = add_takedown(small.catalog, Takedown(0, 0.0, "x", "other"))
    assert added.id > lifted.id
    file = SegmentFile("observed", 1, SerialRange(0, 10), "name", 1, 10, 5, "f" * 64)
    assert record_segment(small.catalog, file, lifted.id) is None  # its writer knew the first one alone
    small.catalog.close()
