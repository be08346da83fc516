"""A reference to an enqueued job: its id, with methods to query its state and to cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dragoman.client import features
from dragoman.client.body import plain_value
from dragoman.client.caller import Question
from dragoman.dialects.endpoint import ClientEndpoint

if TYPE_CHECKING:
    from dragoman.client.app import App


class State(str):
    """The name of a state (`waiting`, `leased`, `done`, …, `unknown`) with the attempt and the queue."""

    attempt: int
    queue: str

    def __new__(cls, word: str, attempt: int = 0, queue: str = "") -> State:
        state = super().__new__(cls, word)
        state.attempt, state.queue = attempt, queue
        return state


class Handle:
    """A reference to an enqueued job."""

    __slots__ = ("_app", "id")

    def __init__(self, app: App, id: str) -> None:  # noqa: A002 - its name in the API
        self._app = app
        self.id = id

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"

    async def state(self) -> State:
        """The job's current state. An id that the broker does not know, or no longer knows, is `unknown`."""
        answer = await self._ask(features.STATE, self._ask_state)
        if not isinstance(answer, dict):
            return State("unknown")
        return State(
            str(answer.get("state", "unknown")), int(answer.get("attempt") or 0), str(answer.get("queue") or "")
        )

    async def cancel(self) -> bool:
        """Cancel the job if it is not settled; False when it is settled or unknown. A worker that runs it is not interrupted."""
        return await self._ask(features.CANCEL, self._ask_cancel) is True

    def state_sync(self) -> State:
        return self._app.background.run(self.state())

    def cancel_sync(self) -> bool:
        return self._app.background.run(self.cancel())

    async def _ask(self, feature: features.Feature, question: Question) -> Any:
        features.require(self._app.address.profile.name, feature)
        return plain_value(await self._app.connections().caller.ask(question, True, self._app.wait_s))

    def _ask_state(self, endpoint: ClientEndpoint, question_id: bytes) -> None:
        endpoint.ask_state(question_id, self.id.encode())

    def _ask_cancel(self, endpoint: ClientEndpoint, question_id: bytes) -> None:
        endpoint.ask_cancel(question_id, self.id.encode())
