"""Snapshots: each set of files is stored once, and read as it was shown."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select

from pypi_assets.catalog.database import Catalog
from pypi_assets.catalog.observed.snapshots import read_snapshots, snapshot_content, store_snapshots
from pypi_assets.catalog.tables import snapshots
from pypi_assets.index.models import IndexFile

pages = st.dictionaries(
    st.text(min_size=1, max_size=5), st.tuples(st.sampled_from(["a" * 64, "b" * 64, None]), st.booleans()), max_size=4
)


def files(page: dict[str, tuple[str | None, bool]]) -> list[IndexFile]:
    return [
        IndexFile(name, f"https://example.org/{number}", sha256, number, None, None, yanked, None, False, None)
        for number, (name, (sha256, yanked)) in enumerate(page.items())
    ]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shown=st.lists(pages, max_size=6), data=st.data())
def test_what_pages_show_alike_is_one_snapshot_in_whatever_order(catalog: Catalog, shown, data):
    contents = [snapshot_content(data.draw(st.permutations(files(page)))) for page in shown]
    with catalog.write() as connection:
        ids = store_snapshots(connection, contents)
        assert store_snapshots(connection, reversed(contents)) == ids
        found = dict(read_snapshots(connection, set(ids.values())))
        digests = connection.scalars(select(snapshots.c.sha256)).all()
        assert len(digests) == connection.scalar(select(func.count(snapshots.c.sha256.distinct())))
    assert len(ids) == len({tuple(sorted(page.items())) for page in shown})
    for page, content in zip(shown, contents, strict=True):
        listed = [[name, sha256, yanked] for name, (sha256, yanked) in sorted(page.items())]
        assert found[ids[content]].files == listed
