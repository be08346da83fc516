"""What is left in the caller's hand once the broker keeps a job: its id, and questions about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.client import features
from dragoman.client.body import plain_value
from dragoman.client.features import require
from dragoman.dialects.emqp.client_side import CANCEL, STATE, encode_question

if TYPE_CHECKING:
    from dragoman.client.app import App


class State(str):
    """A state word (`waiting`, `leased`, `done`, …, `unknown`) that also knows the attempt and the queue."""

    attempt: int
    queue: str

    def __new__(cls, word: str, attempt: int = 0, queue: str = "") -> State:
        state = super().__new__(cls, word)
        state.attempt, state.queue = attempt, queue
        return state


class Handle:
    """A job that the broker keeps."""

    __slots__ = ("_app", "id")

    def __init__(self, app: App, id: str) -> None:  # noqa: A002 - its name in the API
        self._app = app
        self.id = id

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"

    async def state(self) -> State:
        """Where the job is now. An id that the broker does not know (any more) is `unknown`."""
        told = await self._question(STATE)
        if not isinstance(told, dict):
            return State("unknown")
        return State(str(told.get("state", "unknown")), int(told.get("attempt") or 0), str(told.get("queue") or ""))

    async def cancel(self) -> bool:
        """End the job if it is not settled; False when it is, or is unknown. A worker that runs it is not interrupted."""
        return await self._question(CANCEL) is True

    def state_sync(self) -> State:
        return self._app.background.run(self.state())

    def cancel_sync(self) -> bool:
        return self._app.background.run(self.cancel())

    async def _question(self, command: bytes) -> Any:
        require(self._app.address.tongue.name, features.STATE if command == STATE else features.CANCEL)
        caller = self._app.desk().caller
        question_id = caller.ids.take()
        message = encode_question(command, question_id, self.id.encode())
        return plain_value(await caller.call(question_id, message, True, self._app.wait_s))
