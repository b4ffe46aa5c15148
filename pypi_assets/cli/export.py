"""`pypi-assets export ...`: writes what is known as files that other tools read.

The formats of locked distributions are those of `export/`; here they only become commands.
"""

from pathlib import Path
from typing import Any

import click

from pypi_assets.cli.lock_options import LOCK_FILE, environment_options, locked_answer, print_remarks, print_serial
from pypi_assets.cli.options import command
from pypi_assets.export.summaries import SUMMARIES
from pypi_assets.terminal import counted, print_message


@click.group("export")
def export_group() -> None:
    """Write files that other tools read.

    What is made of a lock goes to standard output; what it lacks, and why, to standard error.
    """


@command("owners", "--top-level owners.jsonl.gz", group=export_group)
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--top-level", is_flag=True, required=True, help="All top-level names; there is no file of all modules.")
@click.option(
    "--candidates", "most", type=click.IntRange(1, 20), default=3, show_default=True, help="The best of each name."
)
def owners_command(path: Path, top_level: bool, most: int) -> None:  # noqa: ARG001 - it is always given
    """Write all top-level names with their first candidates into one file, for programs that are offline.

    PATH is compressed where it ends with .gz.
    """
    from pypi_assets.cli.questions import opened_versions  # which imports what questions are declared with
    from pypi_assets.lookup.top_level_owners import export_top_level

    with opened_versions() as asking:
        written = asking.answered(lambda: export_top_level(asking.snapshot, path, most))
    names = counted(written.names, "top-level name")
    print_message(f"{path}: {names}, {written.size:,} bytes, as of serial {written.serial}")


def _export_command(name: str) -> None:
    @command(name, "--lock requirements.txt", group=export_group)
    @click.option(
        "--lock",
        required=True,
        type=LOCK_FILE,
        help="The pinned distributions: a requirements.txt with ==, pylock.toml, uv.lock or poetry.lock.",
    )
    @environment_options
    def run(lock: Path, **options: Any) -> None:
        from pypi_assets.export.formats import FORMATS, remarks

        answer = locked_answer(lock, **options)
        click.echo(FORMATS[name].render(answer), nl=False)
        print_remarks(remarks(name, answer))
        print_serial(answer)

    run.help = SUMMARIES[name]
    run.short_help = SUMMARIES[name]


for _name in SUMMARIES:
    _export_command(_name)
