"""Which projects install a command: by its name and by its beginning."""

from pypi_assets.dumps.full_dump import full_dump
from pypi_assets.leveldbs.versions.publish import build_version
from pypi_assets.lookup.commands_reader import CommandResult, CommandsReader
from pypi_assets.lookup.latest import open_latest
from pypi_assets_tests.lookup.publisher import Publisher


def test_commands_lead_to_the_projects_that_install_them(publisher: Publisher) -> None:
    for _ in range(2):
        publisher.publish()
    small = publisher.small
    small.read("demo-1.0.tar.gz", ("demo",), ())
    small.read("demo_b-1.0.tar.gz", ("demo.b", "other"), ())
    small.read("other-2.tar.gz", ("demo",), ())
    full_dump(small.catalog, publisher.storage, 1, since=small.catalog.clock())
    build_version("commands", storage=publisher.storage, catalog=small.catalog)
    with open_latest(CommandsReader, publisher.storage) as reader:
        answer = reader.command("demo")
        assert (answer.version, answer.serial) == (reader.version, publisher.serial)
        assert answer.results == (
            {"command": "demo", "project": "demo", "normalized": "demo", "versions": ["1.0"]},
            {"command": "demo", "project": "other", "normalized": "other", "versions": ["1", "2"]},
        )
        assert set(answer.results[0]) == set(CommandResult.__annotations__)
        stream = reader.commands("demo.")
        assert (stream.version, stream.serial) == (reader.version, publisher.serial)
        assert [(one["command"], one["normalized"]) for one in stream] == [("demo.b", "demo-b")]
        assert [one["command"] for one in reader.commands()] == ["demo", "demo", "demo.b", "other"]
        assert reader.command("dem").results == ()
        assert list(reader.commands("x")) == []
