"""The table of projects that can no longer be installed: event descriptions, and harmless foreign text."""

import msgspec

from pypi_assets.defs.solvability_days import losses_table
from pypi_assets.resolve.solvability import Event, NewlyUnsolvable, Solvability
from pypi_assets_tests.named import unnamed
from pypi_assets_tests.resolve.test_solvability_files import MADE


def rows(made: Solvability) -> list[str]:
    return losses_table(made).splitlines()[2:]


def test_each_loss_has_its_events_and_first_sentence_of_proof() -> None:
    broken, odd = rows(MADE)
    assert broken.startswith("| broken | here | 1.0 | ")
    assert unnamed(broken, 1300, "Lib", "yank release", "a.whl", 6, "Because") == []
    assert odd.startswith("| odd | here | 1.0 | ")
    without = msgspec.structs.replace(MADE, newly_unsolvable=(NewlyUnsolvable("broken", "there", "1", ()),))
    [row] = rows(without)
    assert row.startswith("| broken | there | 1 | ")


def test_foreign_text_is_inert_and_only_the_first_losses_are_shown() -> None:
    event = Event(7, None, "<b>", "[click](x)", "", ("`a`.whl|",), 1)
    lost = (NewlyUnsolvable("broken", "here", "<script>", (event,)),)
    [row] = rows(msgspec.structs.replace(MADE, newly_unsolvable=lost))
    assert "<b>" not in row
    assert "<script>" not in row
    assert "[click](" not in row
    many = losses_table(msgspec.structs.replace(MADE, newly_unsolvable=lost * 53)).splitlines()
    assert len(many) == 2 + 50 + 2
    assert unnamed(many[-1], "3", "report solvability", "--day", "2026-03-02") == []
