"""RISP, the byte protocol under rq."""
