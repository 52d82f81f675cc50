"""The HTTP service: what did the outside ask for? (extra `service`)."""
