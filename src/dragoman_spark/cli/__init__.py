"""The commands of `dragoman pipeline`. Importing them needs no Spark: each imports its job when it runs."""
