"""What to follow: root projects, rules, and what follows from both. Nothing here touches the database or an index.

- `plan`: what a person states of a scope, in the file of indexes or as options of `scope create`.
- `root_files`: the roots of a requirements.txt, pyproject.toml or lock.
- `ruleset`: rules in TOML, and what they decide about projects and files; which files lead on to what they require.
- `spans`: the projects that roots lead to, at all serials at once, by the spans at which something holds.
- `states`: the states of a scope, and which one follows which.
"""

LEAST_NICE, MOST_NICE = -10_000, 10_000
"""The priorities that a scope, and a rule, can have."""
