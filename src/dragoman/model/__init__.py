"""The nouns every room shares: messages, peers, facts and the records they are kept in."""
