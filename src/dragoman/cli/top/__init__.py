"""`dragoman top`: the broker in numbers, as they change."""
