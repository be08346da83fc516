"""`dragoman demo`: all five dialects, every crossing, and a kill −9 in the middle, in about two minutes."""
