"""The resident follower: what is new on the index is crawled, logged in the journal, dumped and in LevelDBs in seconds.

It calls what the commands and Dagster's assets call, and decides nothing of its own but when. Each stage is in its
package.
"""
