"""Read lock files: the version of each project that they pin, with files and hashes, and the environment.

What an index knows about the pinned versions belongs to `lookup/`.
"""
