"""Filters: what is wanted, from texts, of records and of their lines; and clear errors for what is no part of one."""

from itertools import product

import orjson
import pytest

from pypi_assets.journal.filters import KINDS, FilterError, RecordFilter
from pypi_assets.journal.record_reader import Journal
from pypi_assets_tests.journal.written import records_of
from pypi_assets_tests.naming import naming
from pypi_assets_tests.service.published import Published


def records(published: Published) -> list[dict]:
    return records_of(Journal(published.storage))


def found(published: Published, **parts: list[str]) -> list[tuple]:
    wanted = RecordFilter.parse(**parts)
    return [(one["stream"], one["kind"], one["normalized"]) for one in records(published) if wanted.wants(one)]


def test_nothing_given_wants_all(journaled: Published):
    assert len(found(journaled)) == len(records(journaled)) > 30
    assert RecordFilter().read_streams == ("index", "observed", "content")


def test_each_part_restricts_and_its_values_add_up(journaled: Published):
    assert {name for _, _, name in found(journaled, projects=["PyYAML", "GONE"])} == {"pyyaml", "gone"}
    assert {stream for stream, _, _ in found(journaled, streams=["Index"])} == {"index"}
    assert set(found(journaled, kinds=["yank release", "file-yanked", "FILE_REMOVED"])) == {
        ("index", "yank release", "demo"),
        ("observed", "file yanked", "demo"),
        ("observed", "file removed", "gone"),
    }
    assert found(journaled, projects=["demo"], kinds=["file removed"]) == []


def test_a_module_is_named_by_what_has_it_or_something_below(journaled: Published):
    assert set(found(journaled, modules=["yaml"])) == {
        ("content", "file read", "pyyaml"),
        ("content", "new provider", "pyyaml"),
        ("content", "file read", "yaml-copy"),
        ("content", "new provider", "yaml-copy"),
    }
    assert set(found(journaled, modules=["yaml.nodes"])) == {("content", "file read", "pyyaml")}
    compared = ("content", "release compared", "demo")
    assert compared in found(journaled, modules=["demo.new"])
    assert found(journaled, modules=["yam"]) == []
    assert found(journaled, modules=["yaml"], streams=["observed"]) == []


def test_what_a_release_has_gained_is_wanted_of_comparisons_alone(journaled: Published):
    compared = ("content", "release compared", "demo")
    assert set(found(journaled, gained=["modules"])) == {compared}
    assert found(journaled, gained=["Requires-Python", "start_up"]) == []
    assert RecordFilter.parse(gained=["start-up"]) == RecordFilter.parse(gained=["Start_Up"])
    wanted = RecordFilter.parse(gained=["start-up"])
    record = {"stream": "content", "kind": "release compared", "normalized": "demo"}
    names = ["demo.pth"]
    for gained, lost, is_wanted in [({"start_up": names}, {}, True), ({"modules": names}, {"start_up": names}, False)]:
        of_it = record | {"gained": gained, "lost": lost}
        assert (wanted.wants(of_it), wanted.wants_line(orjson.dumps(of_it))) == (is_wanted, is_wanted)


def test_the_streams_that_are_read_are_those_that_can_have_it():
    assert RecordFilter.parse(kinds=["yank release"]).read_streams == ("index",)
    assert RecordFilter.parse(kinds=["gap", "file read"]).read_streams == ("index", "observed", "content")
    assert RecordFilter.parse(modules=["yaml"]).read_streams == ("content",)
    assert RecordFilter.parse(modules=["yaml"], kinds=["file added"]).read_streams == ()
    assert RecordFilter.parse(gained=["start-up"]).read_streams == ("content",)
    assert RecordFilter.parse(gained=["start-up"], kinds=["file read"]).read_streams == ()


def test_lines_are_refused_as_their_records_are(journaled: Published):
    every = records(journaled)
    projects, kinds, streams, modules, gained = (
        [[], ["demo"], ["pyyaml", "gone"]],
        [[], ["file added", "add file"], ["new provider", "release compared"]],
        [[], ["content"], ["index", "observed"]],
        [[], ["yaml"], ["demo.new", "no\u00ebl"]],
        [[], ["modules"], ["start-up", "license"]],
    )
    for parts in product(projects, kinds, streams, modules, gained):
        wanted = RecordFilter.parse(*parts)
        assert [wanted.wants_line(orjson.dumps(one)) for one in every] == [wanted.wants(one) for one in every]
        streams_of = {one["stream"] for one in every if wanted.wants(one)}
        assert streams_of <= set(wanted.read_streams)


def test_a_name_that_is_not_ascii_is_found_however_it_is_written():
    wanted = RecordFilter.parse(modules=["no\u00ebl"])
    record = b'{"normalized":"a","kind":"file read","stream":"content","modules":["no\\u00ebl.x"]}'
    assert wanted.wants_line(record)


def test_every_kind_that_is_written_is_known(journaled: Published):
    assert {(one["stream"], one["kind"]) for one in records(journaled)} <= {
        (stream, kind) for stream, kinds in KINDS.items() for kind in kinds
    }


@pytest.mark.parametrize(
    ("parts", "values"),
    [
        (
            {"kinds": ["file gone"]},
            ["kind", "file gone", "add file", "remove file"],
        ),
        ({"streams": ["all"]}, ["stream", "all", "index", "observed", "content"]),
        ({"projects": [" "]}, ["project", 1, "1,000"]),
        ({"modules": ["m"] * 1_001}, ["module", "1,001", "1,000"]),
        ({"gained": ["weight"]}, ["gained", "weight", "modules", "requires-python", "start-up"]),
    ],
)
def test_what_is_wrong_names_what_is_accepted(parts: dict[str, list[str]], values: list[object]):
    with pytest.raises(FilterError, match=naming(*values)):
        RecordFilter.parse(**parts)


def test_a_filter_of_json_is_texts_or_lists_of_texts():
    assert RecordFilter.of_fields({"project": "Demo", "kind": ["file-added"]}) == RecordFilter.parse(
        projects=["demo"], kinds=["file added"]
    )
    for fields, values in [
        ({"projects": "demo"}, ["projects", "project", "kind", "stream", "module", "gained"]),
        ({"module": 7}, ["module"]),
        ({"module": ["a", None]}, ["module"]),
    ]:
        with pytest.raises(FilterError, match=naming(*values)):
            RecordFilter.of_fields(fields)
