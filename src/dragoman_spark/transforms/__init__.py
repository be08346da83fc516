"""Queries over facts: each file has one, as a function from frames to the frame of one table. No session, no UDF."""
