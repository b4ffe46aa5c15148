"""Reads setup.cfg as configparser does, at a small part of its cost: sections, options, values of several lines."""


def parse_setup_cfg(text: str) -> dict[str, dict[str, str]]:
    """Section to option to value; option names are lower-case and written with `_`, the lines of a value are stripped.

    Lines that belong to nothing are left out; of repeated options the last counts.
    """
    sections: dict[str, dict[str, list[str]]] = {}
    options: dict[str, list[str]] | None = None
    value: list[str] | None = None
    indent = 0
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        margin = len(line) - len(line.lstrip())
        if value is not None and margin > indent:
            value.append(stripped)
        elif stripped[0] == "[" and "]" in stripped:
            options, value = sections.setdefault(stripped[1 : stripped.rindex("]")], {}), None
        elif options is not None:
            value, indent = _open_option(options, stripped), margin
    return {
        name: {option: "\n".join(lines).strip() for option, lines in options.items()}
        for name, options in sections.items()
    }


def _open_option(options: dict[str, list[str]], line: str) -> list[str] | None:
    """The lines of the value that begins in `line`, None where it sets no option."""
    end = min((at for at in (line.find("="), line.find(":")) if at >= 0), default=-1)
    if end <= 0:
        return None
    value = options[line[:end].strip().lower().replace("-", "_")] = [line[end + 1 :].strip()]
    return value


def listed(value: str) -> list[str]:
    """A list as setup.cfg writes it: one item a line, or separated by commas on one line."""
    parts = value.splitlines() if "\n" in value else value.split(",")
    return [part.strip() for part in parts if part.strip()]


def mapped(value: str) -> dict[str, str]:
    """`key = value` items as setup.cfg writes them."""
    pairs = (item.partition("=") for item in listed(value))
    return {key.strip(): rest.strip() for key, equals, rest in pairs if equals}
