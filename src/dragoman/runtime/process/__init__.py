"""The broker's process: its data directory, logs, memory and file descriptors."""
