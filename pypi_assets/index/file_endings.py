"""The endings of the filenames that a package index lists.

`distributions/filenames.py` decides which of these files are read. A test compares both tables.
"""

RELEASE_ENDINGS = (
    *(".whl", ".egg", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tbz", ".tar.xz", ".txz"),
    *(".tlz", ".tar.lz", ".tar.lzma", ".tar.z", ".tar"),
)
"""Endings in lower case of wheels, eggs and sdists. The version ends directly before these, or at a hyphen."""
FILE_ENDINGS = (*RELEASE_ENDINGS, ".exe", ".msi", ".rpm", ".deb", ".dmg")
"""Endings in lower case of all files of a release."""
