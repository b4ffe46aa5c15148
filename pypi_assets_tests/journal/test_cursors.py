"""Cursors are opaque texts that order records as the journal does."""

import base64
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypi_assets.journal.cursors import Cursor, CursorError

cursors = st.builds(Cursor, st.integers(0, 10**17), st.integers(0, 3), st.integers(0, 10**17))


@given(cursors)
def test_each_cursor_is_its_text(cursor: Cursor) -> None:
    assert Cursor.parse(str(cursor)) == cursor
    assert str(cursor).isascii()


@pytest.mark.nightly
@given(st.text(max_size=100))
def test_any_other_text_is_refused(text: str) -> None:
    with suppress(CursorError):
        assert str(Cursor.parse(text)).rstrip("=") == text.rstrip("=")


@pytest.mark.parametrize("place", ["2.1.1.1", "1.1.9.1", "1.-1.0.0", "1.1.1", ""])
def test_a_place_that_no_record_has_is_refused(place: str) -> None:
    with pytest.raises(CursorError):
        Cursor.parse(base64.urlsafe_b64encode(place.encode()).decode())


def test_records_are_ordered_by_serial_then_stream_then_ordinal() -> None:
    places = [(3, "index", 0), (3, "observed", 0), (3, "observed", 1), (3, "content", 0), (4, "index", 0)]
    found = [Cursor.of({"serial": serial, "stream": stream, "ordinal": n}) for serial, stream, n in places]
    assert found == sorted(found)
    assert found[3] < Cursor.after_serial(3) < found[4]
