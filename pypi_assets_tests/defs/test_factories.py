"""Results of checks show their descriptions as they are, and no other function makes results."""

import re
from pathlib import Path

import pypi_assets
from pypi_assets.defs.factories import check_result
from pypi_assets_tests.hostile_index import HOSTILE, live_in_markdown

PACKAGE = Path(pypi_assets.__file__).parent


def test_what_an_index_puts_into_a_description_is_inert() -> None:
    result = check_result(passed=False, description=f"the index failed: {HOSTILE}", metadata={"lag": 1.5})
    assert not result.passed
    assert "=cmd" in str(result.description)
    assert live_in_markdown(str(result.description)) == []
    assert result.metadata["lag"].value == 1.5


def test_each_check_and_each_markdown_goes_through_the_functions_that_escape() -> None:
    escaping = r"markdown_table|_example_table|losses_table|_key_schema|preview|table"
    made = re.compile(rf"dg\.AssetCheckResult\(|MetadataValue\.md\((?!f?\"?\{{?({escaping})\b)")
    found = [str(path) for path in PACKAGE.rglob("*.py") if made.search(path.read_text(encoding="utf-8"))]
    assert found == [str(PACKAGE / "defs" / "factories.py")]
