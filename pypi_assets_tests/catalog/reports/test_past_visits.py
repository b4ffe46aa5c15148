"""Past visits, and the differences between the files of two visits."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypi_assets.catalog.derived.visits import VisitStatus, VisitVerdict, begin_visits, record_verdicts
from pypi_assets.catalog.observed.projects import enter_projects, find_project
from pypi_assets.catalog.reports.past_visits import compare_visits, past_visits
from pypi_assets.index.models import IndexFile, ProjectPage
from pypi_assets_tests.examples import examples
from pypi_assets_tests.small_catalog import small_catalog

shown_files = st.dictionaries(
    st.sampled_from([f"demo-{number}.0.zip" for number in range(4)]),
    st.tuples(st.sampled_from(["a" * 64, "b" * 64, None]), st.booleans()),
)


def page(serial: int, files: dict[str, tuple[str | None, bool]]) -> ProjectPage:
    return ProjectPage(
        "demo",
        serial,
        "active",
        tuple(
            IndexFile(name, f"https://example.org/{name}", sha256, 1, None, None, yanked, None, False, None)
            for name, (sha256, yanked) in files.items()
        ),
    )


@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(was=shown_files, now=shown_files)
def test_differences_transform_one_visit_into_the_other(tmp_path_factory, was, now):
    catalog = small_catalog(Path(tmp_path_factory.mktemp("catalog"))).catalog
    with catalog.write() as connection:
        enter_projects(connection, [("demo", 0)])
        demo = find_project(connection, "demo")
        assert demo is not None
        for serial, files in ((1, was), (2, now)):
            [visit_id] = begin_visits(connection, [demo.id], "range", f"range:0-{serial}", 1.0).values()
            record_verdicts(connection, [VisitVerdict(visit_id, demo, VisitStatus.FULL, page(serial, files))], 2.0)
        begin_visits(connection, [demo.id], "range", "range:0-3", 3.0)
    with catalog.read() as connection:
        [first, second, ongoing] = past_visits(connection, demo)
        assert (first.files, second.files, first.snapshot == second.snapshot) == (len(was), len(now), was == now)
        assert (ongoing.outcome, ongoing.ended_at, ongoing.files) == ("ongoing", None, None)
        found = {
            (difference.filename, difference.change): difference
            for difference in compare_visits(connection, demo, 1, 2)
        }
    catalog.close()
    assert {name for name, change in found if change == "came"} == now.keys() - was.keys()
    assert {name for name, change in found if change == "went"} == was.keys() - now.keys()
    both = was.keys() & now.keys()
    assert {name for name, change in found if change == "other hash"} == {n for n in both if was[n][0] != now[n][0]}
    assert {name for name, change in found if change == "yanked"} == {n for n in both if now[n][1] > was[n][1]}
    assert {name for name, change in found if change == "unyanked"} == {n for n in both if now[n][1] < was[n][1]}
    for (name, _), one in found.items():
        assert (one.sha256_before, one.sha256_after) == (was.get(name, (None,))[0], now.get(name, (None,))[0])
