"""What crawl, audit and failures print about the distributions that they read."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pypi_assets.terminal import counted, print_message

if TYPE_CHECKING:
    from pypi_assets.crawl.reading import ReadCounts


def describe_reads(reads: "ReadCounts") -> str:
    """One line of how many distributions were read, and how they ended."""
    counts = {"read": reads.data, "with errors": reads.errors, "unsupported": reads.unsupported}
    counts |= {"vanished": reads.vanished, "exhausted": reads.exhausted}
    done = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if not done:
        return "distributions: none to read"
    fetched = f"{reads.bytes_fetched} bytes fetched, {counted(reads.requests, 'request')}, {reads.seconds:.1f} s"
    return f"distributions: {done} ({fetched})"


def reads_to_json(reads: "ReadCounts") -> dict[str, Any]:
    """`reads` as commands print it with --json."""
    return {"gave_up" if name == "exhausted" else name: value for name, value in asdict(reads).items()}


def report_failed(reads: "ReadCounts", visits: int) -> None:
    """Prints how many reads failed and how many visits were exhausted, and the command that lists them."""
    if failed := reads.errors + reads.exhausted:
        print_message(f"distributions that could not be read: {failed}; see `pypi-assets failures list`")
    if visits:
        print_message(f"projects that could not be visited: {visits}; see `pypi-assets failures list`")
