"""May this host be called now? The gate, its plan, and the normal form of a host.

Read `gate` first (what callers use), then `plan` (who gets a slot next) with its values in `claims`,
then `sleepers` (who is woken) and `hosts` (what counts as one host).
"""
