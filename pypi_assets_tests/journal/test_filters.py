"""Filters are parsed from text and match records and their lines. Errors name invalid parts."""

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
    return [
        (record["stream"], record["kind"], record["normalized"])
        for record in records(published)
        if wanted.wants(record)
    ]


def test_empty_filter_matches_all_changes(journaled: Published):
    changes = [record for record in records(journaled) if record["stream"] != "visits"]
    assert len(found(journaled)) == len(changes) > 30
    assert RecordFilter().read_streams == ("index", "observed", "content", "visits")
    assert RecordFilter.parse().read_streams == ("index", "observed", "content")
    assert RecordFilter.parse(kinds=["visit full"]).read_streams == ("visits",)
    assert RecordFilter.parse(streams=["visits"]).read_streams == ("visits",)


def test_parts_are_combined_with_and_and_values_with_or(journaled: Published):
    assert {name for _, _, name in found(journaled, projects=["PyYAML", "GONE"])} == {"pyyaml", "gone"}
    assert {stream for stream, _, _ in found(journaled, streams=["Index"])} == {"index"}
    assert set(found(journaled, kinds=["yank release", "file-yanked", "FILE_REMOVED"])) == {
        ("index", "yank release", "demo"),
        ("observed", "file yanked", "demo"),
        ("observed", "file removed", "gone"),
    }
    assert found(journaled, projects=["demo"], kinds=["file removed"]) == []


def test_module_filter_matches_the_module_and_its_submodules(journaled: Published):
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


def test_gained_names_need_a_comparison(journaled: Published):
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


def test_only_streams_with_possible_matches_are_read():
    assert RecordFilter.parse(kinds=["yank release"]).read_streams == ("index",)
    assert RecordFilter.parse(kinds=["gap", "file read"]).read_streams == ("index", "observed", "content")
    assert RecordFilter.parse(kinds=["visit-failed"]).read_streams == ("visits",)
    assert RecordFilter.parse(modules=["yaml"]).read_streams == ("content",)
    assert RecordFilter.parse(modules=["yaml"], kinds=["file added"]).read_streams == ()
    assert RecordFilter.parse(gained=["start-up"]).read_streams == ("content",)
    assert RecordFilter.parse(gained=["start-up"], kinds=["file read"]).read_streams == ()


def test_lines_match_as_their_records_do(journaled: Published):
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
        assert [wanted.wants_line(orjson.dumps(record)) for record in every] == [
            wanted.wants(record) for record in every
        ]
        streams_of = {record["stream"] for record in every if wanted.wants(record)}
        assert streams_of <= set(wanted.read_streams)


def test_non_ascii_name_matches_any_encoding():
    wanted = RecordFilter.parse(modules=["no\u00ebl"])
    record = b'{"normalized":"a","kind":"file read","stream":"content","modules":["no\\u00ebl.x"]}'
    assert wanted.wants_line(record)


def test_all_written_kinds_are_known(journaled: Published):
    assert {(record["stream"], record["kind"]) for record in records(journaled)} <= {
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
def test_invalid_value_error_names_accepted_values(parts: dict[str, list[str]], values: list[object]):
    with pytest.raises(FilterError, match=naming(*values)):
        RecordFilter.parse(**parts)


def test_json_filter_has_strings_or_lists_of_strings():
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
