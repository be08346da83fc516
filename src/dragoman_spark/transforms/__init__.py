"""Questions asked of facts: each file answers one, as a function from frames to the frame of one table. No session, no UDF."""
