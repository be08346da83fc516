"""The histories of single messages."""
