"""The conformance lab: recordings of conversations, their words in readable form, and peers that play them again."""
