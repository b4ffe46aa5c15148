"""Distributions of stubs alone are known by what they describe."""

from pypi_assets.export.module_owners import described_modules, stub_only
from pypi_assets_tests.export.pinned import USUAL, release


def test_what_has_stubs_alone_describes_modules() -> None:
    assert stub_only(USUAL) == {"types-pyyaml": ["yaml"]}
    assert described_modules(release("types-x", [], stubs=["google.cloud.x", "google.cloud.x.y"])) == ["google.cloud.x"]


def test_what_has_modules_too_is_no_distribution_of_stubs() -> None:
    assert described_modules(release("a", ["a"], stubs=["a._c"])) == []
    assert described_modules(release("a", None)) == []
