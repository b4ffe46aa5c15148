"""The resident follower crawls, journals and dumps changes of the index, and builds LevelDBs, within seconds.

It calls the same functions as the commands and Dagster's assets, and decides only when to call them. Each stage has its
own package.
"""
