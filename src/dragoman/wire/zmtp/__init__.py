"""ZMTP 3.1, 3.0, 2.0 and 1.0 without I/O: `connection` reads a peer's stream, `frames` writes messages."""
