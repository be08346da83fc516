"""Where facts come from: files of the lake, read by name or as they arrive."""
