"""Check results show their descriptions unformatted, and all results are made by the escaping functions."""

import re
from pathlib import Path

import pypi_assets
from pypi_assets.defs.factories import check_result
from pypi_assets_tests.hostile_index import HOSTILE, live_in_markdown

PACKAGE = Path(pypi_assets.__file__).parent


def test_index_text_in_a_description_is_inert() -> None:
    result = check_result(passed=False, description=f"the index failed: {HOSTILE}", metadata={"lag": 1.5})
    assert not result.passed
    assert "=cmd" in str(result.description)
    assert live_in_markdown(str(result.description)) == []
    assert result.metadata["lag"].value == 1.5


def test_checks_and_markdown_use_the_escaping_functions() -> None:
    escaping = r"markdown_table|_example_table|losses_table|_key_schema|preview|table"
    made = re.compile(rf"dg\.AssetCheckResult\(|MetadataValue\.md\((?!f?\"?\{{?({escaping})\b)")
    found = [str(path) for path in PACKAGE.rglob("*.py") if made.search(path.read_text(encoding="utf-8"))]
    assert found == [str(PACKAGE / "defs" / "factories.py")]
