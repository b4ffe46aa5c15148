"""The page of the commands has every command, with its options and description."""

from pypi_assets_tests.cli.commands import every_command
from pypi_assets_tests.cli.document import ELSEWHERE, OF_ALL, PAGE, rendered, table


def test_page_has_the_current_table() -> None:
    page = PAGE.read_text()
    assert rendered(page) == page, "run python -m pypi_assets_tests.cli.document"


def test_table_has_each_command_once() -> None:
    rows = [line for line in table().splitlines() if line.startswith("| `")]
    names = [" ".join(path) for path, _ in every_command() if path[0] not in ELSEWHERE]
    assert len(rows) == len(names) + len(ELSEWHERE)
    for name in names:
        assert any(row.startswith((f"| `{name}`", f"| `{name} ")) for row in rows), name


def test_page_describes_the_common_options() -> None:
    before, _, _ = PAGE.read_text().partition("<!-- commands -->")
    assert [name for name in sorted(OF_ALL) if f"`{name}`" not in before] == []
