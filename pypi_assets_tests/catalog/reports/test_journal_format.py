"""Each record starts with its position and the common fields, so readers find a position without parsing the rest."""

import subprocess
import sys
from itertools import groupby

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.reports.journal_format import JournalStream, new_record, normalized_name, numbered
from pypi_assets.journal.filters import RecordFilter
from pypi_assets_tests.examples import examples


@settings(max_examples=examples(100))
@given(st.lists(st.integers(1, 6)).map(sorted), st.sampled_from(JournalStream))
def test_ordinals_count_the_records_of_each_serial(serials: list[int], stream: JournalStream) -> None:
    records = list(numbered(stream, (new_record(serial, 1, "add file", None) for serial in serials)))
    assert [record["serial"] for record in records] == serials
    assert {record["stream"] for record in records} <= {stream.value}
    for _, of_serial in groupby(records, key=lambda record: record["serial"]):
        ordinals = [record["ordinal"] for record in of_serial]
        assert ordinals == list(range(len(ordinals)))


def test_common_fields_come_first() -> None:
    [record] = numbered(JournalStream.INDEX, [new_record(7, 5, "add file", 1_772_000_000)])
    record |= {"project": "Demo.Pkg", "normalized": normalized_name("Demo.Pkg"), "filename": "demo.whl"}
    line = orjson.dumps(record)
    assert line.startswith(b'{"serial":7,"of_serial":5,"ordinal":0,"stream":"index","kind":"add file","at":1772000000,')
    assert RecordFilter.parse(projects=["demo-pkg"]).wants_line(line)
    assert not RecordFilter.parse(projects=["demo"]).wants_line(line)


def test_journal_format_imports_no_database_module() -> None:
    program = "import sys, pypi_assets.catalog.reports.journal_format; sys.exit('sqlalchemy' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
