"""The durable, polite, cancellable batch-fetch engine for Trio."""
