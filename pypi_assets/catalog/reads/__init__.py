"""What was read from distributions: outcomes, records, lists of names, and the packs that extracts lie in.

Which distribution is read next is in `work`; fetching and reading itself is outside the catalog.
"""
