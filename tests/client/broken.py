"""A module that cannot be imported: what a worker says of it is tested."""

NOTHING = 1 / 0
