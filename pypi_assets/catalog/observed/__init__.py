"""What the index showed: projects, events, snapshots of pages, and how visits of each project ended.

Facts are stored here as they came. What follows from them (which file was live when) is in `derived`; what was read
from files is in `reads`.
"""
