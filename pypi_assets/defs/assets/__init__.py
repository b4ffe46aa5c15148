"""The assets, one module a group: `definitions.py` finds them, and names each group after its module.

An asset refers to those before it by key, so no module imports another. What all share is in `policy.py`.
"""
