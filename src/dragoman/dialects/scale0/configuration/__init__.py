"""Scale0's configuration tree and its three notations."""
