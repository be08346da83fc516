"""Commands that change a broker or maintain its data."""
