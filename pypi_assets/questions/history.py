"""The question `history`: show the events of a project, by serial."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pypi_assets.lookup.project_answers import HistoryEntry
from pypi_assets.questions.names import ExactProjectName
from pypi_assets.questions.question import Accepts, Parameters, question
from pypi_assets.questions.snapshot import After, Found, Snapshot


@dataclass(frozen=True)
class HistoryParameters(Parameters):
    """Parameters of `history`."""

    project: ExactProjectName
    all: Annotated[bool, Accepts(text="also show events that change no files, such as roles and renames")] = False


def _rows(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    outcome = "" if entry["visit"] else entry["outcome"]
    what = ": ".join(part for part in (entry["text"], outcome, entry["error"]) if part)
    if entry["not_before"]:
        what += f", after {entry['not_before']}"
    counts = {flag: len(entry[flag]) for flag in ("yanked", "unyanked") if entry[flag]}
    flags = [f"{count} {'file' if count == 1 else 'files'} {flag}" for flag, count in counts.items()]
    yield {
        "serial": entry["serial"],
        "time": entry["at"],
        "what": "; ".join([what, *flags]),
        "live": len(entry["live"]),
        "away": len(entry["away"]),
    }


@question(
    "history",
    path="/v1/projects/{project}/history",
    example="requests --all",
    argument="PROJECT",
    result=HistoryEntry,
    columns=lambda _given: ("serial", "time", "what", "live", "away"),
    rows=_rows,
    nothing_found=lambda given: f"no events of {given.project} are known",
    hints=lambda snapshot, given: () if snapshot.is_known(given.project) else snapshot.project_hints(given.project),
    unknown=lambda snapshot, given: None if snapshot.is_known(given.project) else "project",
    remarks=lambda snapshot, given, found: snapshot.history_remarks(given.project, found.results),
    project_of=lambda given: given.project,
    needs_catalog=lambda _given: True,
)
def history(snapshot: Snapshot, given: HistoryParameters, _after: After = None) -> Found[HistoryEntry]:
    """Show what happened to a project, by serial.

    This needs a catalog. At an earlier serial, it shows the events up to this serial, without visits of the project's
    page.
    """
    return snapshot.history(given.project, every_event=given.all)
