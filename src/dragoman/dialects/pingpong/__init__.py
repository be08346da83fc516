"""The pingpong dialect."""
