"""pyproject.toml of projects that name a backend."""


def backend(name: str, more: str = "") -> str:
    return f'[build-system]\nrequires = []\nbuild-backend = "{name}"\n{more}'
