"""The broker's side of lines."""

from urllib.parse import unquote_to_bytes

from dragoman.dialects.plain import PlainDialect, PlainSession, SessionHandler
from dragoman.dialects.session import Outboxes
from dragoman.model.enums import KEPT_WANTED, REASON_NAMES, REFUSAL_CODES, REPLY_WANTED, TAKEN
from dragoman.model.message import Message
from tests.dialects.example import LINES, BadLine, escaped
from tests.dialects.example.settings import LinesSettings


class LinesHandler(SessionHandler):
    def __init__(self, session: PlainSession, settings: LinesSettings) -> None:
        super().__init__(session)
        self.exchange, self.settings = session.exchange, settings
        self.queues: list[bytes] = []

    def start(self) -> None:
        self.session.say_now(b"HELLO\n")

    def receive(self, data: bytes) -> bytes:
        *lines, rest = data.split(b"\n")
        for line in lines:
            word, _, tail = line.partition(b" ")
            name, _, text = tail.partition(b" ")
            if word == b"PUT":
                self.put(name, unquote_to_bytes(text))
            elif word == b"GET":
                self.get(name)
            elif word == b"OK":
                self.answer(name, unquote_to_bytes(text))
            elif word == b"BYE":
                self.exchange.leave(self.session)
            else:
                raise BadLine(f"{word[:20]!r} is no command")
        return rest

    def put(self, queue: bytes, body: bytes) -> None:
        message = Message(LINES, queue, b"", body)
        message.client, message.address, message.flags = self.session, self.session.address, REPLY_WANTED | KEPT_WANTED
        self.check(self.exchange.submit(message))

    def get(self, queue: bytes) -> None:
        if queue not in self.queues:
            if len(self.queues) >= self.settings.queues_max:
                raise BadLine(f"more than {self.settings.queues_max} queues")
            self.queues.append(queue)
            self.check(self.exchange.join(self.session, [(10, name) for name in self.queues]))
        self.exchange.ready(self.session, 1)

    def answer(self, digits: bytes, value: bytes) -> None:
        message = self.exchange.by_digits(self.session, digits, 0)
        if message is None or message.attempt == 0:
            self.exchange.late(self.session, self.exchange.ids.fact_id(digits, 0, digits))
        else:
            self.exchange.reply(self.session, message, value, False)

    def check(self, refusal: int) -> None:
        if refusal != TAKEN:
            self.session.say(b"NO 0 %s\n" % REFUSAL_CODES[refusal].encode())

    def say_of(self, word: bytes, message: Message, text: bytes = b"") -> None:
        self.session.say(b"%s %s %s\n" % (word, self.exchange.ids.digits(message.number), escaped(text)))

    def kept(self, message: Message) -> None:
        self.say_of(b"ID", message)

    def deliver(self, message: Message) -> None:
        self.say_of(b"JOB", message, message.body)

    def answered(self, message: Message, value: bytes) -> None:
        self.say_of(b"OK", message, value)

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        self.say_of(b"NO", message, value or REASON_NAMES[reason].encode())


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> PlainDialect:
    return PlainDialect(outboxes, LinesSettings())


def new_session(dialect: PlainDialect, listener: str, listener_no: int) -> PlainSession:
    return PlainSession(LINES, listener, listener_no, dialect, lambda session: LinesHandler(session, dialect.settings))
