"""Fuzzing of every parser of outside text that the engine has. No fixtures are needed."""
