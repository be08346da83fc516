"""`dragoman top`: live metrics of the broker."""
