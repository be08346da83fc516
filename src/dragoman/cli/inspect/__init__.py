"""Commands that inspect a broker."""
