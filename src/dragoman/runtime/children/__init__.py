"""Child processes of the broker: the sealer, the indexer, the web page, the exporter."""
