"""Queries of the state, which never change it."""
