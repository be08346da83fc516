"""Facts as bytes: the layout of their records, and how they are written, read and searched."""
