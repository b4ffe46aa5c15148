"""Lists of names are stored once each, whatever the names are made of, and come back as they were."""

from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.stored_contents import StoredLists, list_digest, lists_with_module, store_lists
from pypi_assets.catalog.tables import name_lists, required_names

LISTS = [(), ("one",), ("one", "two"), ("two", "one"), ("größe", "名"), ("half a pair \udc80",), ("nul \0",)]


def test_lists_come_back_as_they_were(catalog: Catalog):
    with catalog.write() as connection:
        ids = store_lists(connection, [*LISTS, LISTS[1]])
        loaded = StoredLists(connection).load(ids.values())
    assert {names: loaded[list_id] for names, list_id in ids.items()} == {names: list(names) for names in LISTS}


def test_a_list_is_stored_once_under_its_hash(catalog: Catalog):
    with catalog.write() as connection:
        first = store_lists(connection, LISTS[:3])
        again = store_lists(connection, LISTS)
        assert connection.scalar(select(func.count()).select_from(name_lists)) == len(LISTS)
        stored = dict(connection.execute(select(name_lists.c.id, name_lists.c.sha256)).all())
    assert first.items() <= again.items()
    assert {names: stored[list_id] for names, list_id in again.items()} == {
        names: list_digest(names) for names in LISTS
    }


def test_lists_of_modules_are_found_by_what_they_hold(catalog: Catalog):
    names = "größe" * 2_000
    with catalog.write() as connection:
        as_requirements = store_lists(connection, [("one", "two.a")])
        assert list(lists_with_module(connection, "one")) == []
        ids = store_lists(connection, [("other",)], [("one", "two.a"), ("two.b",), ("two",), (), (names,), LISTS[5]])
        assert ids[("one", "two.a")] == as_requirements[("one", "two.a")]
        assert store_lists(connection, [], [("one", "two.a")]).items() <= ids.items()

        def found(module: str) -> set[int]:
            return set(lists_with_module(connection, module))

        assert found("one") == found("two.a") == {ids[("one", "two.a")]}
        assert found("two") == {ids[("two",)]}
        assert found(names) == {ids[(names,)]}
        assert found(LISTS[5][0]) == {ids[LISTS[5]]}
        assert found("other") == found(names[:512]) == found("") == set()


def test_lists_of_requirements_are_found_by_the_projects_that_they_name(catalog: Catalog) -> None:
    requirements = ("Base_Two; extra == 'x'", "base ; python_version < '3'", "base", "no requirement!", "n" * 600)
    with catalog.write() as connection:
        as_modules = store_lists(connection, [], [("one",), requirements])
        assert connection.execute(select(required_names)).all() == []
        ids = store_lists(connection, [("one",), requirements, ()], [("two",)])
        assert ids.items() >= as_modules.items()
        expected = [
            ("base", ids[requirements], 0),
            ("base-two", ids[requirements], 2),
            ("one", ids[("one",)], 0),
        ]
        assert sorted(connection.execute(select(required_names)).all()) == expected
        store_lists(connection, [("one",), requirements])
        assert len(connection.execute(select(required_names)).all()) == len(expected)
        flags = select(name_lists.c.id).where(name_lists.c.has_required)
        assert set(connection.scalars(flags)) == {ids[("one",)], ids[requirements], ids[()]}
