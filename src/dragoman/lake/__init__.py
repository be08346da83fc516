"""The lake: the journal's facts as Parquet files, for bulk analysis."""
