"""Frames to commands and replies to frames: one package per protocol, blind to each other and to the core's inside."""
