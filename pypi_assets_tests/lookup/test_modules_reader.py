"""Which projects provide a module: now, by prefix, and at any serial."""

from pathlib import Path

from pypi_assets.catalog.publications.dump_rows import providing_releases
from pypi_assets.lookup.latest import open_latest
from pypi_assets.lookup.modules_reader import providing_projects
from pypi_assets_tests.lookup.publisher import Publisher
from pypi_assets_tests.small_catalog import small_catalog


def test_prefixes_stream_in_order(publisher: Publisher) -> None:
    with open_latest("modules", publisher.storage) as modules:
        stream = modules.modules("demo")
        assert (stream.version, stream.serial) == (1, 100)
        assert [(one["module"], one["project"]) for one in stream] == [("demo", "demo"), ("demo.b", "demo-b")]
        assert [one["module"] for one in modules.modules("demo.")] == ["demo.b"]
        assert [one["module"] for one in modules.modules()] == ["demo", "demo.b"]
        assert list(modules.modules("x")) == []


def test_a_module_is_found_by_its_root_and_not_by_its_siblings(tmp_path: Path):
    small = small_catalog(tmp_path)
    small.add(1, "Demo", "1", "demo-1.zip", modules=("space.one",), requires_dist=("two",))
    small.add(2, "Demo", "2", "demo-2.zip", modules=("space.one", "two"))
    small.add(3, "other", "1", "other-1.zip", modules=("two",), requires_dist=("space.one",))
    small.remove(4, "demo-2.zip")

    def provided(module: str, serial: int) -> object:
        return [
            (row["project"], row["versions"])
            for row in providing_projects(module, providing_releases(small.catalog, serial, module))
        ]

    assert provided("space.one", 3) == [("Demo", ["1", "2"])]
    assert provided("space", 3) == []
    assert provided("two", 2) == [("Demo", ["2"])]
    assert provided("two", 4) == [("other", ["1"])]
    small.catalog.close()
