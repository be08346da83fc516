"""Jobs that run inside the original job manager. Plain functions: no job knows its broker.

A *book* is a file to which every job appends one line when it begins or ends, with its process and its job manager.
A *gate* is a file that a job waits for: so a test decides how long a job lasts.
"""

import json
import os
import signal
import time

GATE_WAIT_S = 40.0


def note(book, word):
    line = json.dumps({"word": word, "process": os.getpid(), "manager": os.getppid(), "at": time.time()})
    with open(book, "a") as page:
        page.write(line + "\n")


def begun_before(book, word):
    with open(book) as page:
        return sum(json.loads(line)["word"] == word + " begun" for line in page) > 1


def add(a, b):
    return a + b


def mark(book, word):
    note(book, word)
    return word


def fail(book, word):
    note(book, word)
    raise ValueError("no such parcel")


def hold(book, word, gate):
    note(book, word + " begun")
    ends = time.monotonic() + GATE_WAIT_S
    while not os.path.exists(gate) and time.monotonic() < ends:
        time.sleep(0.02)
    note(book, word + " ended")
    return word


def hold_the_first_time(book, word, gate):
    note(book, word + " begun")
    if not begun_before(book, word):
        ends = time.monotonic() + GATE_WAIT_S
        while not os.path.exists(gate) and time.monotonic() < ends:
            time.sleep(0.02)
    return word


def crash_the_first_time(book, word):
    note(book, word + " begun")
    if not begun_before(book, word):
        os.kill(os.getpid(), signal.SIGKILL)
    return word


class Parcel:
    def __init__(self, grams):
        self.grams = grams

    def postage(self, rate):
        return self.grams * rate
