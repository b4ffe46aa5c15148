"""What crawl, audit and failures print about the distributions that they read."""

from pypi_assets.crawl.reading import ReadCounts
from pypi_assets.terminal import print_message


def describe_reads(reads: ReadCounts) -> str:
    """One line of how many distributions were read, and how they ended."""
    counts = {"read": reads.data, "with errors": reads.errors, "unsupported": reads.unsupported}
    counts |= {"vanished": reads.vanished, "without attempts left": reads.gave_up}
    done = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    if not done:
        return "distributions: none to read"
    return (
        f"distributions: {done} ({reads.bytes_fetched} bytes fetched, {reads.requests} requests, {reads.seconds:.1f} s)"
    )


def report_failed(reads: ReadCounts, visits: int) -> None:
    """Prints how many reads failed and how many visits were exhausted, and the command that lists them."""
    if failed := reads.errors + reads.gave_up:
        print_message(f"distributions that could not be read: {failed}; see `pypi-assets failures list`")
    if visits:
        print_message(f"projects that could not be visited: {visits}; see `pypi-assets failures list`")
