"""The data pipeline on Spark: turns the lake's facts into tables and reports. The broker never imports it."""
