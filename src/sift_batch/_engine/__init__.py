"""The engine: who works now, what is next for one job, and who hears of it.

Read `drain.py` first (one job, start to finish), then `workers.py` (who drains, and how it all stops),
then `runner.py` (what the application calls).
"""
