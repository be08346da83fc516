"""One side of the NATS measurement: `python -m bench.ask_nats worker URL` or `… client URL IN_FLIGHT WARMUP SECONDS PID`."""

from __future__ import annotations

import asyncio
import sys

import msgspec
import nats
import uvloop
from nats.aio.msg import Msg

from bench.ask_load import load

SUBJECT = "bench"
ANSWER_S = 30


class Question(msgspec.Struct):
    """The same small body as the dragoman job's arguments."""

    number: int


decode = msgspec.json.Decoder(Question).decode
encode = msgspec.json.Encoder().encode


async def worker(url: str) -> None:
    connection = await nats.connect(url)

    async def answer(message: Msg) -> None:
        await message.respond(encode(decode(message.data).number))

    await connection.subscribe(SUBJECT, cb=answer)
    await connection.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()


async def client(url: str, in_flight: int, warmup_s: float, seconds: float, broker_pid: int) -> None:
    connection = await nats.connect(url)

    async def ask(number: int) -> int:
        message = await connection.request(SUBJECT, encode(Question(number)), timeout=ANSWER_S)
        return msgspec.json.decode(message.data, type=int)

    await load(ask, in_flight, warmup_s, seconds, broker_pid)
    await connection.close()


if __name__ == "__main__":
    if sys.argv[1] == "worker":
        uvloop.run(worker(sys.argv[2]))
    else:
        uvloop.run(client(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5]), int(sys.argv[6])))
