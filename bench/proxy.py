"""The yardstick: libzmq's own C proxy, which keeps nothing.

ROUTER in front, DEALER behind. A request crosses to a worker with its client's routing frame; the worker sends its answers
back through the same envelope: as many as the broker would move for the job in that dialect.
High-water marks are off on both sides: a ROUTER drops what is over its mark.
"""

from __future__ import annotations

import json

import zmq


def main() -> None:
    context = zmq.Context()
    front, back = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    for socket in (front, back):
        socket.set_hwm(0)
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind("tcp://127.0.0.1:0")
    addresses = {
        "client": front.getsockopt_string(zmq.LAST_ENDPOINT),
        "worker": back.getsockopt_string(zmq.LAST_ENDPOINT),
    }
    print(json.dumps(addresses), flush=True)
    zmq.proxy(front, back)


if __name__ == "__main__":
    main()
