"""The results of reading distributions: outcomes, records, lists of names, and the packs that contain extracts.

The queue of pending reads is in `work`; fetching and reading the files is outside the catalog.
"""
