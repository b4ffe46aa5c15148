"""The journal: every change, in order, as four streams of segments in the storage, each secured by a hash chain.

The content of records is defined in `catalog/reports/`. This package has the segments, their chain, cursors, and the
readers of the journal.
"""
