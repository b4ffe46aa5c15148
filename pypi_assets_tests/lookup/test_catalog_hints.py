"""What may have been meant follows from the catalog too, for commands that read it."""

from pathlib import Path

from pypi_assets.lookup.catalog_hints import past_module_hints, past_project_hints, unknown_project_hints
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.small_catalog import small_catalog


def test_hints_about_a_project_and_a_module(tmp_path: Path) -> None:
    small = small_catalog(tmp_path)
    small.add(1, "PyYAML", "6.0", "PyYAML-6.0.tar.gz", modules=("yaml", "yaml.loader"))
    small.add(2, "requests", "2.0", "requests-2.0.tar.gz", modules=("requests",))
    small.add(3, "no-modules", "2.0", "no-modules-2.0.tar.gz", modules=None)
    with small.catalog.read() as connection:
        for name, expected in {
            "yaml": ["yaml", "PyYAML"],
            "PyYML": ["pyyaml"],
            "pyyaml": [],
            "Requests.": ["requests"],
            "something": [],
            "half \udc80\0": [],
        }.items():
            hints = list(unknown_project_hints(connection, name))
            assert (len(hints), unnamed(" ".join(hints), *expected)) == (bool(expected), []), name
    [hint] = past_project_hints(small.catalog, "requets")
    assert unnamed(hint, "requests") == []
    [hint] = past_module_hints(small.catalog, "yamll.loader")
    assert unnamed(hint, "yaml") == []
    assert list(past_module_hints(small.catalog, "yaml.loader2")) == []
    assert list(past_module_hints(small.catalog, "half \udc80")) == []
    small.catalog.close()
