"""The ledger: what is known that survives a crash. SQLite has its only home here.

`sqlite.py` is the way in. `arrival.py`, `steps.py`, `removal.py` and `queries.py` are plain functions, one
a transaction; `bridge.py` and `writer.py` bring them to a thread and back; `files.py` and `schema.py` open
what is on the disk.
"""
