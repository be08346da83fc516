"""The ebus dialect."""
