"""Makes the results of checks. Dagster shows their descriptions as Markdown, so text of the index is inert in them."""

from collections.abc import Mapping

import dagster as dg

from pypi_assets.inert import inert_markdown


def check_result(
    *,
    passed: bool,
    description: str,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.ERROR,
    metadata: Mapping[str, float | None] | None = None,
) -> dg.AssetCheckResult:
    """A result whose `description` is shown as it is, whatever an index or a file has put into it."""
    return dg.AssetCheckResult(
        passed=passed, severity=severity, description=inert_markdown(description), metadata=metadata
    )
