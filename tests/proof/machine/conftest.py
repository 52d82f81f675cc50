"""A state machine against a model: its rules walk the real engine on a real file. No fixtures are needed."""
