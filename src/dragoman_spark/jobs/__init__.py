"""What runs: the only room of the package with a session."""
