"""The part of a Markdown page that a script generates, between two comments with its name."""


def with_generated(page: str, name: str, content: str) -> str:
    """Return the page with `content` between `<!-- NAME -->` and `<!-- end of NAME -->`."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{content}\n{end}{rest.partition(end)[2]}"
