"""The data pipeline: the lake's facts in, tables and reports out, on Spark. The broker never imports it."""
