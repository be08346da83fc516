"""Finds messages and their histories in the journal's files."""
