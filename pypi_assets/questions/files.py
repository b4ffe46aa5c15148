"""The question `files`: list the live distributions of a project."""

from dataclasses import dataclass

from pypi_assets.lookup.project_answers import LiveFileResult
from pypi_assets.questions.names import ExactProjectName
from pypi_assets.questions.question import Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot

COLUMNS = ("filename", "project", "version", "kind", "yanked", "outcome", "live_since")


@dataclass(frozen=True)
class FilesParameters(Parameters):
    """Parameters of `files`."""

    project: ExactProjectName


@question(
    "files",
    path="/v1/projects/{project}/files",
    example="requests --at 1200",
    argument="PROJECT",
    result=LiveFileResult,
    columns=lambda _given: COLUMNS,
    sort_key=lambda result: (result["version"], result["filename"]),
    key_size=2,
    nothing_found=lambda given: f"no distribution of {given.project} is live",
    hints=lambda snapshot, given: snapshot.project_hints(given.project),
    unknown=lambda snapshot, given: None if snapshot.is_known(given.project) else "project",
    project_of=lambda given: given.project,
    needs_catalog=lambda _given: True,
)
def files(snapshot: Snapshot, given: FilesParameters, _after: After = None) -> Found[LiveFileResult]:
    """List the live distributions of a project.

    This needs a catalog. The order is by version, compared as text, and then by filename.
    """
    return snapshot.live_files(given.project)
