"""What to follow: root projects, rules, and what follows from both. Nothing here touches the database or an index.

- `root_files`: the roots of a requirements.txt, pyproject.toml or lock; `roots` what reading one returns.
- `ruleset`: rules in TOML, and what they decide about projects and files.
- `selected_files`: which files of a project lead on to what they require; `closure`: the projects that roots lead to.
  Both are of all serials at once, by the `spans` at which something holds.
"""
