"""Budgets hold, the files that the index has removed are evicted last, and a kill leaves no half file."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.database import Catalog, open_catalog
from pypi_assets.catalog.publications.journal_segments import add_takedown
from pypi_assets.catalog.reads.forgotten_files import all_forgotten
from pypi_assets.catalog.reads.kept_files import KeptObject
from pypi_assets.catalog.reads.kept_lists import find_kept
from pypi_assets.journal.takedowns import wanted_takedown
from pypi_assets.keeping import verification
from pypi_assets.storage.store import Storage, open_storage
from pypi_assets_tests.databases import sqlite_database
from pypi_assets_tests.examples import examples
from pypi_assets_tests.keeping.kept_model import KeptModel, bytes_of, sha256_of
from pypi_assets_tests.kills import killed_at, run_and_kill

MOST = 1_000
WRITES = ((Storage, "put"), (Storage, "delete"))
"""All calls that change the storage."""


@pytest.fixture
def model(catalog: Catalog, storage: Storage) -> KeptModel:
    """Return a model with the scope `a` of the projects 1 and 2, and the scope `b` of the projects 2 and 3."""
    model = KeptModel(catalog, storage)
    model.add_scope("a", MOST, [1, 2])
    model.add_scope("b", MOST, [2, 3])
    return model


def test_gone_file_is_evicted_last(model: KeptModel) -> None:
    old, yanked, gone, new = (model.add_file(1, number, 300, number) for number in range(1, 5))
    model.keep(old, yanked, gone)
    model.yank(yanked)
    model.remove(gone)
    model.keep(new)
    assert model.members()["a"] == {sha256_of(number, 300) for number in (2, 3, 4)}
    model.keep(model.add_file(1, 5, 400, 5))
    assert model.members()["a"] == {sha256_of(2, 300), sha256_of(3, 300), sha256_of(5, 400)}
    model.keep(model.add_file(1, 6, 500, 6))  # would need the room of a file that is yanked or gone
    assert model.members()["a"] == {sha256_of(2, 300), sha256_of(3, 300), sha256_of(5, 400)}
    model.set_most("a", 500)
    assert model.members()["a"] == {sha256_of(3, 300)}
    model.assert_budgets_hold()
    model.assert_whole(is_clean=True)


def test_smaller_budget_evicts_files_that_the_index_has_removed_since(model: KeptModel) -> None:
    removed = [model.add_file(1, number, 300, number) for number in range(1, 4)]
    model.keep(*removed)
    for id_ in removed:
        model.remove(id_)
    model.set_most("a", 400)  # no stored rank is up to date
    assert model.members()["a"] == {sha256_of(3, 300)}
    model.assert_budgets_hold()


def test_removed_file_makes_room_for_a_removed_file_of_a_later_upload(model: KeptModel) -> None:
    first, second, newest = (model.add_file(1, number, 450, number) for number in range(1, 4))
    model.keep(first, second)
    for id_ in (first, second, newest):
        model.remove(id_)
    model.keep(newest)
    assert model.members()["a"] == {sha256_of(2, 450), sha256_of(3, 450)}


def test_older_upload_takes_no_place_of_a_newer_one(model: KeptModel) -> None:
    newer = model.add_file(1, 1, 900, 9)
    model.keep(newer)
    model.keep(model.add_file(1, 2, 200, 3))
    assert model.members()["a"] == {sha256_of(1, 900)}
    model.keep(model.add_file(1, 3, 100, 2))  # has room without evictions
    assert model.members()["a"] == {sha256_of(1, 900), sha256_of(3, 100)}


def test_shared_file_is_stored_once_and_stays_while_a_scope_wants_it(model: KeptModel) -> None:
    shared = model.add_file(2, 1, 500, 1)
    copy = model.add_file(1, 1, 500, 1)  # the same bytes in another project
    model.keep(shared, copy)
    assert model.members() == {"a": {sha256_of(1, 500)}, "b": {sha256_of(1, 500)}}
    assert len(list(model.storage.list("files"))) == 1
    model.set_most("a", 400)
    assert model.members() == {"b": {sha256_of(1, 500)}}
    model.assert_budgets_hold()
    model.assert_whole(is_clean=True)
    model.set_most("b", 100)
    assert list(model.storage.list("files")) == []
    model.assert_whole(is_clean=True)


def test_forgotten_file_is_never_kept_again(model: KeptModel) -> None:
    file = model.add_file(1, 1, 300, 1)
    model.keep(file)
    hash_ = sha256_of(1, 300)
    assert model.keeper.forget(hash_, "has a secret")
    assert not model.keeper.forget(hash_, "again")
    assert list(model.storage.list("files")) == []
    model.keep(file)
    assert model.members() == {}
    with model.opened.read() as connection:
        [record] = all_forgotten(connection)
    assert (record.sha256, record.reason, record.had_bytes) == (hash_, "has a secret", True)
    assert record.deleted_at is not None
    model.assert_whole(is_clean=True)


def test_file_forgotten_while_it_is_written_leaves_nothing(model: KeptModel) -> None:
    file = model.add_file(1, 1, 300, 1)
    with killed_at(2, *WRITES) as reached:  # after its object is written
        model.keep(file)
    assert reached
    model.keeper.forget(sha256_of(1, 300), "has a secret")
    assert list(model.storage.list("files")) == []
    model.assert_whole(is_clean=True)


def test_takedown_deletes_the_bytes_and_refuses_later_files(model: KeptModel) -> None:
    taken, other = model.add_file(1, 1, 100, 1), model.add_file(2, 2, 100, 1)
    model.keep(taken, other)
    model.begin()
    added = add_takedown(model.catalog, wanted_takedown("a court order", "Project-1"))
    model.keeper.delete_doomed()
    assert model.members() == {"a": {sha256_of(2, 100)}, "b": {sha256_of(2, 100)}}
    later = model.add_file(1, 3, 100, 2)
    model.keep(later)
    assert sha256_of(3, 100) not in model.members()["a"]
    with model.opened.read() as connection:
        assert [(one.takedown_id, one.reason) for one in all_forgotten(connection)] == [(added.id, "a court order")]
    model.assert_whole(is_clean=True)


@pytest.mark.parametrize("step", range(1, 9))
def test_kill_at_any_write_leaves_no_half_file(model: KeptModel, step: int) -> None:
    first, second, third = (model.add_file(1, number, 400, number) for number in range(1, 4))
    model.keep(first, second)
    with killed_at(step, *WRITES) as reached:
        model.keep(third)
        model.keeper.forget(sha256_of(2, 400), "a reason")
    assert bool(reached) == (step <= 6)
    model.assert_budgets_hold()
    model.assert_whole(is_clean=False)
    model.clean()
    model.assert_whole(is_clean=True)
    model.keep(first, third)
    model.assert_budgets_hold()
    model.assert_whole(is_clean=True)
    with model.opened.read() as connection:
        assert find_kept(connection, sha256_of(3, 400)) is not None


def test_clean_up_deletes_files_that_no_scope_wants(model: KeptModel) -> None:
    mine, shared = model.add_file(1, 1, 100, 1), model.add_file(2, 2, 100, 1)
    model.keep(mine, shared)
    with model.opened.write() as connection:
        connection.exec_driver_sql("UPDATE scopes SET keep_files = false WHERE name = 'a'")
    model.clean()
    assert model.members() == {"b": {sha256_of(2, 100)}}
    model.assert_budgets_hold()
    model.assert_whole(is_clean=True)


def test_orphan_is_deleted_once_it_is_old(model: KeptModel) -> None:
    hash_ = sha256_of(7, 50)
    path = f"files/{hash_[:2]}/{hash_}/0123456789abcdef"
    model.storage.put(path, bytes_of(7, 50))
    model.clean(is_late=False)
    assert model.storage.exists(path)
    model.clean()
    assert not model.storage.exists(path)


@pytest.mark.nightly
def test_two_processes_share_one_budget(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = (tmp_path / "storage").as_uri()
    first = KeptModel(open_catalog(database_url), open_storage(url))
    first.add_scope("a", MOST, [1])
    ids = [first.add_file(1, number, 90, number % 60) for number in range(40)]
    second = KeptModel(open_catalog(database_url), open_storage(url), files=first.files)
    put = Storage.put
    too_much: list[int] = []

    def put_and_add_up(storage: Storage, path: str, content: object) -> None:
        put(storage, path, content)  # type: ignore[arg-type]
        if (size := sum(one.size for one in storage.list("files"))) > MOST:
            too_much.append(size)

    monkeypatch.setattr(Storage, "put", put_and_add_up)
    with ThreadPoolExecutor(2) as pool:
        list(
            pool.map(
                lambda work: [work[0].keep(*work[1][at : at + 4]) for at in range(0, 40, 4)],
                [(first, ids), (second, ids[::-1])],
            )
        )
    assert too_much == []
    first.assert_budgets_hold()
    first.assert_whole(is_clean=True)
    for id_ in ids:  # files that were being written could not be evicted
        first.keep(id_)
    assert first.members()["a"] == {sha256_of(number, 90) for number in range(29, 40)}
    first.assert_budgets_hold()
    first.opened.close()
    second.opened.close()


_NUMBER = st.integers(0, 5)
_OPERATIONS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 3), _NUMBER, st.integers(1, 9)),
    st.tuples(st.just("keep"), st.lists(st.integers(0, 30), min_size=1, max_size=4)),
    st.tuples(st.sampled_from(["remove", "yank", "forget"]), st.integers(0, 30)),
    st.tuples(st.just("most"), st.sampled_from("ab"), st.one_of(st.none(), st.integers(1, 1_500))),
    st.tuples(st.just("clean"), st.booleans()),
    st.tuples(st.just("kill"), st.integers(1, 6)),
)


def run(model: KeptModel, operation: tuple[object, ...]) -> None:
    match operation:
        case ("add", int(project_id), int(number), int(uploaded)):
            model.add_file(project_id, number, 60 + 170 * number, uploaded)
        case ("keep", list(numbers)) if model.files:
            model.keep(*{1 + number % len(model.files) for number in numbers})
        case ("remove", int(number)) if model.files:
            model.remove(1 + number % len(model.files))
        case ("yank", int(number)) if model.files:
            model.yank(1 + number % len(model.files))
        case ("forget", int(number)) if model.files:
            model.keeper.forget(sha256_of(*model.files[1 + number % len(model.files)][:2]), "drawn")
        case ("most", str(name), most):
            model.set_most(name, most)  # type: ignore[arg-type]
        case ("clean", bool(is_late)):
            model.clean(is_late=is_late)


@pytest.mark.nightly
@settings(max_examples=examples(60), deadline=None)
@given(st.lists(_OPERATIONS, min_size=8, max_size=30))
def test_any_operations_hold_budgets_and_the_order_of_eviction(operations: list[tuple[object, ...]]) -> None:
    with TemporaryDirectory() as folder:
        catalog = open_catalog(sqlite_database(Path(folder) / "catalog.sqlite"))
        model = KeptModel(catalog, open_storage((Path(folder) / "storage").as_uri()))
        model.add_scope("a", MOST, [1, 2])
        model.add_scope("b", MOST, [2, 3])
        kill_at, is_clean = 0, True
        for operation in operations:
            if operation[0] == "kill":
                kill_at = int(operation[1])  # type: ignore[call-overload]
                continue
            before = model.members()
            if kill_at:
                with killed_at(kill_at, *WRITES) as reached:
                    run(model, operation)
                is_clean &= not reached
            else:
                run(model, operation)
            kill_at = 0
            model.assert_budgets_hold()
            is_clean |= operation == ("clean", True)
            model.assert_whole(is_clean=is_clean)
            if operation[0] in {"keep", "most"} and is_clean:
                assert_lowest_were_evicted(model, before)
        model.clean()
        model.assert_whole(is_clean=True)
        catalog.close()


def assert_lowest_were_evicted(model: KeptModel, before: dict[str, set[str]]) -> None:
    """Check that each evicted file of a scope has a lower rank than each file that stayed."""
    after = model.members()
    for name, had in before.items():
        stayed, evicted = had & after.get(name, set()), had - after.get(name, set())
        order = model.ranks(sorted(had))
        if stayed and evicted:
            assert max(order[one] for one in evicted) < min(order[one] for one in stayed)


def keep_and_evict(catalog: Catalog, storage: Storage) -> None:
    """Keep a file that takes the place of another one, as another process."""
    model = KeptModel(catalog, storage, files={1: (1, 600, 1), 2: (2, 600, 1)})
    model.keep(2)


@pytest.mark.nightly
@pytest.mark.parametrize("step", range(1, 5))
def test_reservation_of_a_killed_process_is_taken_over_at_once(model: KeptModel, step: int) -> None:
    first, second = model.add_file(1, 1, 600, 1), model.add_file(1, 2, 600, 2)
    model.keep(first)
    reached = run_and_kill(keep_and_evict, model.opened, model.storage, step, *WRITES)
    assert reached.partition(" ")[0] == ("before", "after")[(step - 1) % 2]
    model.assert_budgets_hold()
    model.assert_whole(is_clean=False)
    model.keep(second)
    model.assert_budgets_hold()
    assert model.members()["a"] == {sha256_of(2, 600)}
    model.clean()
    model.assert_whole(is_clean=True)


def test_file_that_is_evicted_while_it_is_verified_is_not_corrupt(
    model: KeptModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = model.add_file(1, 1, 300, 1), model.add_file(1, 2, 300, 2)
    model.keep(first, second)
    verify = verification.verify_object

    def verify_after_eviction(storage: Storage, one: KeptObject, blocks: bytes | None) -> str | None:
        if one.sha256 == sha256_of(1, 300):
            model.keeper.forget(one.sha256, "drawn")
        return verify(storage, one, blocks)

    monkeypatch.setattr(verification, "verify_object", verify_after_eviction)
    verified = list(verification.verify_files(model.catalog, model.storage))
    assert [(one.object.sha256, one.fault) for one in verified] == [(sha256_of(2, 300), None)]
