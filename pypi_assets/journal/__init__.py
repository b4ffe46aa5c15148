"""The journal: every change, in order, in three streams of segments in the storage, each with a chain of hashes.

What a record is made of is in catalog/reports/; here are segments, their chain, cursors, and who reads them.
"""
