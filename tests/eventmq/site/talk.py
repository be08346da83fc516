"""A client program on EventMQ's own client library: one JSON command per line in, one JSON answer per line out."""

import json
import sys

import six
import zmq
from eventmq.client import messages
from eventmq.poller import POLLIN, Poller
from eventmq.sender import Sender
from eventmq.utils.messages import send_emqp_message

broker = Sender()
publisher = Sender()
poller = Poller()
subscribers = []


def do_connect(client, publish):
    broker.connect(client)
    poller.register(broker, POLLIN)
    publisher.connect(publish)


def do_defer(func, options):
    return messages.defer_job(broker, func, **options)


def do_schedule(func, options):
    return messages.schedule(broker, func, **options)


def do_send(command, frames):
    return send_emqp_message(broker, command, tuple(frames))


def do_receive(wait_ms):
    if broker in poller.poll(wait_ms):
        return broker.recv_multipart()
    return None


def do_publish(topic, message):
    return messages.send_publish_request(publisher, topic, message)


def do_subscribe(address, topic):
    # As eventmq.subscriber does it, which has its address written into its text.
    socket = zmq.Context.instance().socket(zmq.SUB)
    socket.linger = 0
    socket.setsockopt(zmq.SUBSCRIBE, six.ensure_binary(topic))
    socket.connect(address)
    subscribers.append(socket)
    return len(subscribers) - 1


def do_hear(subscriber, wait_ms):
    socket = subscribers[subscriber]
    if socket.poll(wait_ms):
        return [part.decode() for part in socket.recv_multipart()]
    return None


for line in sys.stdin:
    order = json.loads(line)
    answer = globals()["do_" + order.pop("do")](**order)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
