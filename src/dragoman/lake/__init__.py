"""The lake: the journal's facts as Parquet files, for readers that want all of them at once."""
