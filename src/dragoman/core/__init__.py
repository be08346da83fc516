"""The broker's decisions: commands in, facts out. Pure: no I/O, no clock, no randomness; time is an argument."""
