"""The invariants of every simulated run, and the data to check them."""
