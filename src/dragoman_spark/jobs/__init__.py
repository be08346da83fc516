"""The jobs of the pipeline: the only part of the package with a Spark session."""
