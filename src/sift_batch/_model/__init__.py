"""The words and rules of the engine: values, errors, tables, protocols.

Standard library alone: no Trio, no SQL, no clock, no log. Everything above imports from here, and
nothing here imports from above. Start with `lifecycle`, the two tables that decide every move.
"""
