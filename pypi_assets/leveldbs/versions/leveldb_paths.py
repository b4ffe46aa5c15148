"""Where LevelDB versions and their input lists lie in the storage."""

MANIFEST_NAME = "_MANIFEST.json"


def version_name(version: int) -> str:
    """The name of a version: `00042`."""
    return f"{version:05d}"


def input_lists_path(dataset: str) -> str:
    return f"{dataset}/input_lists"


def input_list_path(dataset: str, version: int) -> str:
    return f"{input_lists_path(dataset)}/{version_name(version)}"


def leveldbs_path(dataset: str) -> str:
    return f"{dataset}/leveldbs"


def leveldb_path(dataset: str, directory: str) -> str:
    """The folder of one attempt to build a version; `directory` is `00042`, or `00042.2` on a later attempt."""
    return f"{leveldbs_path(dataset)}/{directory}"
