"""Decide what to follow from root projects and rules, without access to the database or an index.

- `plan`: the scope that a person describes, in the file of indexes or as options of `scope create`.
- `root_files`: the roots of a requirements.txt, a pyproject.toml or a lock file.
- `ruleset`: rules in TOML, their decisions about projects and files, and the files whose requirements are followed.
- `spans`: the projects that roots lead to, for all serials at once, computed with spans of serials.
- `states`: the states of a scope, and the transitions between them.
"""

LEAST_NICE, MOST_NICE = -10_000, 10_000
"""The range of priorities that a scope or a rule can have. Lower values run first."""
