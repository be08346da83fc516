"""The core's state in memory: queues, lines, schedules, and the mutators that change them."""
