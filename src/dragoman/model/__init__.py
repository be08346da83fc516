"""The data model that all packages share: messages, peers, facts and their records."""
