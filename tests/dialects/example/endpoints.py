"""The SDK's side of lines."""

from collections import deque
from urllib.parse import unquote_to_bytes

from dragoman.dialects.endpoint import ANSWERED, FAILED, KEPT, REFUSED, CallOptions, ClientEndpoint, WorkerEndpoint
from tests.dialects.example import escaped


class Lines:
    """Both directions of a connection."""

    rest = out = b""
    is_ready: bool

    def split(self, data: bytes) -> list[list[bytes]]:
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.is_ready = self.is_ready or b"HELLO" in lines
        return [line.split(b" ", 2) for line in lines if line != b"HELLO"]

    def data_to_send(self) -> bytes:
        out, self.out = self.out, b""
        return out


class LinesClient(Lines, ClientEndpoint):
    def __init__(self) -> None:
        super().__init__()
        self.unnamed: deque[bytes] = deque()  # calls without an ID
        self.calls: dict[bytes, bytes] = {}

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        said = []
        for word, name, text in self.split(data):
            if word == b"ID":
                self.calls[name] = self.unnamed.popleft()
                said.append((KEPT, self.calls[name], b""))
            elif name == b"0":
                said.append((REFUSED, self.unnamed.popleft(), text))
            else:
                kind = ANSWERED if word == b"OK" else FAILED
                said.append((kind, self.calls.pop(name), unquote_to_bytes(text)))
        return said

    def request(self, call_id: bytes, options: CallOptions, body: bytes) -> None:
        self.unnamed.append(call_id)
        self.out += b"PUT %s %s\n" % (options.queue, escaped(body))


class LinesWorker(Lines, WorkerEndpoint):
    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        self.queue = queues[0][1]
        self.out += b"".join(b"GET %s\n" % name for _, name in queues)
        self.ready(slots - len(queues))

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        return [(name, 0.0, unquote_to_bytes(text)) for word, name, text in self.split(data) if word == b"JOB"]

    def ready(self, slots: int) -> None:
        self.out += b"GET %s\n" % self.queue * slots

    def reply(self, request_id: bytes, value: bytes) -> None:
        self.out += b"OK %s %s\n" % (request_id, escaped(value))

    def goodbye(self) -> None:
        self.out += b"BYE\n"


def client(setup: object) -> ClientEndpoint:
    return LinesClient()


def worker(setup: object) -> WorkerEndpoint:
    return LinesWorker()
