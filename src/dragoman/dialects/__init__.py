"""Frames to commands and replies to frames: one package per protocol, independent of each other and of the core's internals."""
