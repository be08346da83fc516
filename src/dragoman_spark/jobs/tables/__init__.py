"""The tables on disk: their folders, how they grow and how readers find them."""
