from pypi_assets.resolve.formats.text import described, for_targets, remarks_on
from pypi_assets_tests.naming import mentions
from pypi_assets_tests.resolve.formats.answers import answer


def test_remarks_name_what_is_yanked_and_what_is_not_known():
    unknown, yanked = remarks_on(answer())
    assert mentions(unknown, "extra-of-lib 2.0")
    assert mentions(yanked, "tool 3")


def test_an_answer_is_described_by_its_serial_and_its_environments():
    assert mentions(described(answer()), 100, "CPython 3.12", "linux-x86_64")
    assert mentions(for_targets(answer(universal=True)), "CPython 3.12", "linux-x86_64", "windows-x86_64")
