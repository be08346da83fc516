"""The worker program: a session communicates with the broker, a crew runs the jobs, and neither can block the other.

session.py     one worker from the broker's point of view: jobs, slots, timeouts
connection.py  one of its connections, which reconnects when it is lost
crew.py        runs jobs in this process: coroutines on a loop of their own, plain functions in threads
child.py       a crew in a child process; its session stays in the parent
parent.py      starts such children and replaces those that die
program.py     the composition root; handles signals and drains
"""
