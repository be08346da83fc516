"""A module with functions deferred by EventMQ's own decorator; the broker's address is in EMQ_BROKER_ADDR."""

import chores
from eventmq import job


@job
def letter(book, word):
    return chores.mark(book, word)
