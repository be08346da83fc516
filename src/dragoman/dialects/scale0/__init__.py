"""The scale0 dialect."""
