"""Tools that work on a journal outside its broker: verify, salvage, backup, index."""
