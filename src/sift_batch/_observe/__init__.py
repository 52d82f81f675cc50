"""What may be said aloud: log events, redaction, the sealing of a process, metrics.

Reading order: `events` (the registry: what the engine can say), `service_events` (the service's own),
`log` (how they reach a logger), `words` and `harmless` (which text is plainly harmless), `exceptions`
(errors without their texts), `redact` (the processor for an application's own events), `lines` (the
finished line and its tripwire), `seal` (a whole process, on request), `metrics` (Prometheus, an extra).

Nothing is imported or configured here: each module is loaded when it is first asked for.
"""
