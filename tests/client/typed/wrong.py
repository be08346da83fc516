"""Every marked line must be an error to the type checker; checked by mypy --strict, never run."""

from __future__ import annotations

from dragoman import App

app = App("emqp://127.0.0.1")


@app.job()
async def send_mail(to: str) -> int:
    return 1


@app.job(retries="many")  # wrong
def add(a: int, b: int) -> int:
    return a + b


async def use() -> None:
    await send_mail.ask(to=7)  # wrong
    await send_mail.ask()  # wrong
    await send_mail.delay(too="a@b.c")  # wrong
    text: str = await send_mail.ask(to="a@b.c")  # wrong
    send_mail.ask_sync("a", "b")  # wrong
    await app.every("* * * * *", add, 1)  # wrong
    print(text)
