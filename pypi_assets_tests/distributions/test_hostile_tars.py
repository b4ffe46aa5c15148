"""The record of an odd sdist matches the files that pip unpacks, or has a doubt or an error."""

import io

import pytest

from pypi_assets.distributions.filenames import parse_filename
from pypi_assets.distributions.limits import ReadLimits
from pypi_assets.distributions.pip_comparison import has_doubt
from pypi_assets.distributions.reader import make_record, read_extract
from pypi_assets_tests.distributions import hostile_sdists, hostile_tars
from pypi_assets_tests.distributions.hostile_tars import DOUBT, ERROR, SAME, TarCase, tar
from pypi_assets_tests.distributions.pip_trees import differences, unpacked_by_pip
from pypi_assets_tests.distributions.raw_archives import pax_header, pax_record
from pypi_assets_tests.slices import slices

CASES = (*hostile_tars.CASES, *hostile_sdists.CASES)


@pytest.mark.nightly
@pytest.mark.parametrize("cases", slices(CASES, 4))
def test_record_matches_pip_tree_or_has_a_doubt(cases: list[TarCase], subtests: pytest.Subtests):
    for case in cases:
        with subtests.test(case.name):
            content = case.build()
            extract = read_extract(io.BytesIO(content), parse_filename(case.filename), ReadLimits(seconds=5))
            record = make_record(extract, case.filename)
            outcome = ERROR if record.error else DOUBT if has_doubt(record) else SAME
            assert outcome == case.outcome, (record.notes, record.error)
            if case.requires is not None:
                assert record.requires_dist == case.requires
            if outcome == SAME:
                assert differences(extract, unpacked_by_pip(content, case.filename)) == []


def test_case_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES) >= 75


@pytest.mark.nightly
def test_million_sparse_keys_in_global_headers_are_dropped():
    header = pax_header(b"".join(pax_record(b"GNU.sparse.%d" % number, b"") for number in range(40_000)), b"g")
    content = tar(*[header] * 25)
    extract = read_extract(io.BytesIO(content), parse_filename("demo-1.0.tar.gz"), ReadLimits(seconds=5))
    assert extract.error is None
    assert "demo-1.0/demo.py" in extract.paths
