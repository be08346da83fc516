"""Sources of facts: files of the lake, read by name or as they arrive."""
