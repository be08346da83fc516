"""The rq dialect."""
