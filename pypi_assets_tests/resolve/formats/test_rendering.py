from pypi_assets.resolve.formats.rendering import described, for_targets, remarks_on
from pypi_assets_tests.resolve.formats.answers import answer


def test_remarks_name_what_is_yanked_and_what_is_not_known():
    assert list(remarks_on(answer())) == [
        "it is not known what these require, and assumed that it is nothing: extra-of-lib 2.0",
        "tool 3 is yanked",
    ]


def test_an_answer_is_described_by_its_serial_and_its_environments():
    assert described(answer()) == "as of serial 100, for CPython 3.12 on linux-x86_64"
    assert for_targets(answer(universal=True)) == "CPython 3.12 on linux-x86_64 and windows-x86_64"
