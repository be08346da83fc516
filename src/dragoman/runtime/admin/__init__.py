"""The admin socket and its operations."""
