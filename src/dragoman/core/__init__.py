"""The broker's decisions: commands in, facts out. Pure: no I/O (but the time zones of cron schedules), no clock, no randomness; time is an argument."""
