"""Files of scopes that keep files are kept as they are read, and the files that were read before are fetched again."""

import hashlib
import random
from functools import partial

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.reads.kept_lists import find_kept, kept_totals, list_kept
from pypi_assets.catalog.scopes.stored_scopes import change_scope, require_scope
from pypi_assets.crawl.incremental_crawl import crawl_incremental
from pypi_assets.crawl.scope_crawl import run_scope, start_scope
from pypi_assets.distributions.zips import WHOLE_FILE_BYTES
from pypi_assets.keeping.objects import BLOCK_BYTES, read_verified, stored_objects
from pypi_assets.scopes.plan import ScopePlan
from pypi_assets.scopes.root_files import named_roots
from pypi_assets_tests.served_index import ServedIndex

LARGE = {"app_module/__init__.py": "", "app_module/data": random.Random(1).randbytes(1_300_000)}
"""Members that make a file larger than the files that are always fetched whole."""


def create(index: ServedIndex, catalog: Catalog, *roots: str, name: str = "mine", **options: object) -> None:
    plan = ScopePlan(name, named_roots(roots).extras, **options)  # type: ignore[arg-type]
    start_scope(index.crawler(catalog), plan)


def kept(catalog: Catalog, **of: str) -> set[str]:
    """Return the filenames of the kept files."""
    with catalog.read() as connection:
        return {filename for one in list_kept(connection, **of) for _, filename in one.names}


def assert_bytes_are_kept(index: ServedIndex, catalog: Catalog) -> None:
    """Check that each kept file has the bytes that were uploaded, and that the storage has no other objects."""
    with catalog.read() as connection:
        files = list(list_kept(connection))
        for file in files:
            written = find_kept(connection, file.sha256)
            assert written is not None
            content = b"".join(read_verified(index.storage, written.object, written.blocks))
            assert hashlib.sha256(content).hexdigest() == file.sha256
            built = index.folder / "built" / file.names[0][1]
            assert content == built.read_bytes()
            assert len(written.blocks) == 32 * -(-len(content) // BLOCK_BYTES)
        assert {sha256 for _, sha256, _ in stored_objects(index.storage)} == {file.sha256 for file in files}
        total = kept_totals(connection)
    assert (total.files, total.bytes) == (len(files), sum(file.size for file in files))


def test_read_file_is_kept_without_a_second_download(index: ServedIndex, catalog: Catalog) -> None:
    names = {
        index.wheel("app", "1.0"),
        index.sdist("app", "1.0"),
        index.wheel("app", "2.0", files=LARGE),
        index.sdist("app", "2.0", files=LARGE),
    }
    assert any((index.folder / "built" / name).stat().st_size > WHOLE_FILE_BYTES for name in names if "whl" in name)
    index.wheel("other", "1.0")
    requested: list[str] = []
    index.faults = lambda request: requested.append(request.url.path)
    create(index, catalog, "app", keep_files=True)
    run_scope(index.crawler(catalog), "mine")
    assert kept(catalog) == names
    assert_bytes_are_kept(index, catalog)
    files = [path for path in requested if path.rpartition("/")[2] in names]
    assert sorted(path.rpartition("/")[2] for path in files) == sorted(names)


def test_file_of_a_range_is_kept(index: ServedIndex, catalog: Catalog) -> None:
    index.wheel("app", "1.0")
    create(index, catalog, "app", keep_files=True)
    run_scope(index.crawler(catalog), "mine")
    name = index.wheel("app", "2.0")
    crawl_incremental(index.crawler(catalog))
    assert name in kept(catalog)
    assert_bytes_are_kept(index, catalog)


def test_files_read_before_are_fetched_by_the_next_run(index: ServedIndex, catalog: Catalog) -> None:
    names = {index.wheel("app", f"{number}.0") for number in range(1, 4)}
    create(index, catalog, "app")
    run_scope(index.crawler(catalog), "mine")
    assert kept(catalog) == set()
    with catalog.read() as connection:
        scope = require_scope(connection, "mine")
    catalog.transact(partial(change_scope, scope=scope, values={"keep_files": True}))
    failing = "app-2.0-py3-none-any.whl"

    def fail(request: Request) -> Response | None:
        return PlainTextResponse("", 404) if request.url.path.endswith(failing) else None

    index.faults = fail
    result = run_scope(index.crawler(catalog), "mine")
    assert (result.kept.files, result.kept.failed, result.is_complete) == (2, 1, True)
    assert kept(catalog) == names - {failing}
    index.faults = None
    assert run_scope(index.crawler(catalog), "mine").kept.files == 1
    assert kept(catalog) == names
    assert_bytes_are_kept(index, catalog)


def test_wrong_bytes_are_not_kept(index: ServedIndex, catalog: Catalog) -> None:
    good = index.wheel("app", "1.0")
    wrong = index.sdist("app", "2.0")

    def corrupt(request: Request) -> Response | None:
        if not request.url.path.endswith(wrong):
            return None
        content = (index.folder / "built" / wrong).read_bytes()
        return Response(content[:-1] + bytes([content[-1] ^ 1]))

    index.faults = corrupt
    create(index, catalog, "app", keep_files=True)
    run_scope(index.crawler(catalog), "mine")
    assert kept(catalog) == {good}
    assert_bytes_are_kept(index, catalog)
