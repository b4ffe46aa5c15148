"""A time as text is added to a record, however the record is written."""

import pytest

from pypi_assets.journal.changes import with_time

TIMED = [
    (b'{"at":0,"project":"a"}', b'{"at":0,"time":"1970-01-01T00:00:00Z","project":"a"}'),
    (b'{"at":null,"project":"a"}', b'{"at":null,"time":null,"project":"a"}'),
    (
        b'{"kind":"x","at":1,"project":"\\"at\\":2"}',
        b'{"kind":"x","at":1,"time":"1970-01-01T00:00:01Z","project":"\\"at\\":2"}',
    ),
    (b'{"kind":"x"}', b'{"kind":"x"}'),
]


def test_a_time_is_added_to_what_a_record_has(subtests: pytest.Subtests):
    for line, expected in TIMED:
        with subtests.test(line=line):
            assert with_time(line) == expected
