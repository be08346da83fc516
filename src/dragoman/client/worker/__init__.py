"""The worker program: a post talks to the broker, a crew runs the jobs, and neither can hold up the other.

post.py      one worker connection: INFORM, READY per free slot, HEARTBEAT, REPLY, time bounds
side_post.py the same for the other dialects, over berth.py: one of their connections each
crew.py      runs jobs in this process: coroutines on a loop of their own, plain functions in threads
child.py     a crew in a process of its own; its post stays with the parent
parent.py    starts such children and replaces those that die
program.py   puts it together, listens to signals, drains
"""
