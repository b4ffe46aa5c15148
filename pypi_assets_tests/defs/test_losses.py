"""The table of what can no longer be installed: its events in words, and foreign text that does nothing."""

import msgspec

from pypi_assets.defs.losses import losses_table
from pypi_assets.resolve.solvability_files import Event, NewlyUnsolvable, Solvability
from pypi_assets_tests.resolve.test_solvability_files import MADE


def rows(made: Solvability) -> list[str]:
    return losses_table(made).splitlines()[2:]


def test_each_loss_has_its_events_and_the_first_sentence_of_its_proof() -> None:
    assert rows(MADE) == [
        "| broken | here | 1.0 | serial 1300: Lib: yank release a.whl and 6 more | Because … |",
        "| odd | here | 1.0 | not searched for, since there are many losses | not known |",
    ]
    without = msgspec.structs.replace(MADE, newly_unsolvable=(NewlyUnsolvable("broken", "there", "1", ()),))
    assert rows(without) == ["| broken | there | 1 | not found in time | it took too long |"]


def test_foreign_text_is_inert_and_only_the_first_losses_are_shown() -> None:
    event = Event(7, None, "<b>", "[click](x)", "", ("`a`.whl|",), 1)
    lost = (NewlyUnsolvable("broken", "here", "<script>", (event,)),)
    [row] = rows(msgspec.structs.replace(MADE, newly_unsolvable=lost))
    assert "<b>" not in row
    assert "<script>" not in row
    assert "[click](" not in row
    many = losses_table(msgspec.structs.replace(MADE, newly_unsolvable=lost * 53)).splitlines()
    assert len(many) == 2 + 50 + 2
    assert many[-1] == "and 3 more: `pypi-assets report solvability --day 2026-03-02`"
