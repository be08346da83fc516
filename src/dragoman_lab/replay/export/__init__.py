"""Converts the facts of a journal to the tables of an exported test."""
