"""The command that compares the catalog with the index."""

import click

from pypi_assets.cli.opening import opened_crawler
from pypi_assets.cli.options import JSON, command
from pypi_assets.cli.read_counts import reads_to_json, report_failed
from pypi_assets.terminal import counted, plain, print_json


class _Percent(click.FloatRange):
    name = "number"  # in the message about a value that is none


@command("audit", "--share 10")
@click.option(
    "--share",
    type=_Percent(0, 100),
    metavar="PERCENT",
    help="Also visit this share of all projects, longest unvisited first; default: PYPI_ASSETS_AUDIT_SHARE_PERCENT.",
)
@JSON
def audit_command(share: float | None, as_json: bool) -> None:
    """Find drift between the index and the catalog.

    Drift is a difference without an event in the index's changelog. Compares the serials of all projects with the
    project list, visits what differs and a share of the rest, and reports what the visits found.
    """
    from pypi_assets.crawl.index_audit import audit_index
    from pypi_assets.settings import load_settings

    share = load_settings().audit_share_percent if share is None else share
    with opened_crawler() as crawler:
        result = audit_index(crawler, share)
    audit, findings = result.audit, result.audit.findings
    if as_json:
        print_json(
            {
                "serial": audit.serial,
                "share_percent": audit.share_percent,
                "visited": result.visits.done,
                "visits_given_up": result.visits.exhausted,
                "drift": findings.counts,
                "examples": findings.examples,
                "reads": reads_to_json(result.reads),
            }
        )
    else:
        found = ", ".join(f"{count} {cause}" for cause, count in findings.counts.items()) or "no drift"
        click.echo(f"audit at serial {audit.serial}: {counted(result.visits.done, 'project')} visited, {found}")
        for cause, projects in findings.examples.items():
            click.echo(f"  {cause}: {plain(projects)}")
    report_failed(result.reads, result.visits.exhausted)
