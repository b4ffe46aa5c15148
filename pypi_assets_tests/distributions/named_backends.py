"""Builds pyproject.toml texts that name a backend."""


def backend(name: str, more: str = "") -> str:
    return f'[build-system]\nrequires = []\nbuild-backend = "{name}"\n{more}'
