"""Writes what people install: archives and packages around one binary. Standard library only."""
