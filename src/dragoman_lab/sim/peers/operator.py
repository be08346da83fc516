"""The operator: pauses, drains, purges, cancels, reloads, handles the quarantine; a change must be durable once it is reported as done."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.dialects.scale0.configuration.notations import JSON, parse
from dragoman.model.enums import BY_OPERATOR, DROPPED
from dragoman.runtime.config.kinds import Document

if TYPE_CHECKING:
    from dragoman_lab.sim.machine.life import BrokerRun
    from dragoman_lab.sim.world import World


class SimOperator:
    def __init__(self, world: World) -> None:
        self.world = world

    def act(self) -> None:
        life = self.world.act_again(100, 2500, self.act)
        if life is None:
            return
        if self.world.chance.random() < 0.1:
            self._reload(life)
        else:
            self.do(life, self._something())

    def _reload(self, life: BrokerRun) -> None:
        """Change the configuration document: every scale0 peer is notified, and those with the old one negotiate again."""
        life.broker.wake()
        tree = parse(JSON, b'{"family": {"edition": "%d"}}' % self.world.chance.randint(1, 3))
        config = life.broker.config
        scale0 = replace(config.dialects["scale0"], config_file=Document("edited.json", tree))
        life.broker.apply(replace(config, dialects={**config.dialects, "scale0": scale0}))

    def _something(self) -> Callable[[Core], object]:
        chance = self.world.chance
        queue = chance.choice(self.world.plan.queues)
        dice = chance.random()
        if dice < 0.05:
            return lambda core: operator.set_draining(core, queue)
        if dice < 0.3:
            return lambda core: operator.set_paused(core, queue, True)
        if dice < 0.5:
            return lambda core: operator.set_paused(core, queue, False)
        if dice < 0.6:
            return self._hurry_one
        if dice < 0.65:
            return lambda core: operator.purge(core, queue, 3)
        if dice < 0.85:
            return self._cancel_one
        return self._tend_quarantine

    def _cancel_one(self, core: Core) -> None:
        """Cancel any open message, also one that is on disk only."""
        numbers = sorted(self.world.chronicle.open)
        if numbers:
            message = core.state.take(self.world.chance.choice(numbers))
            if message is not None:
                core.cancel(message, BY_OPERATOR)

    def _hurry_one(self, core: Core) -> None:
        """Requeue the first message in backoff; else the first in quarantine."""
        waiting = [message for message in core.state.messages.values() if operator.is_backing_off(message)]
        for message in [*waiting, *core.state.quarantine.values()][:1]:
            operator.requeue(core, message)

    def _tend_quarantine(self, core: Core) -> None:
        for message in list(core.state.quarantine.values())[:2]:
            if self.world.chance.random() < 0.5:
                operator.requeue(core, message)
            else:
                core.cancel(message, DROPPED)

    def heal(self, life: BrokerRun) -> None:
        for queue in self.world.plan.queues:
            self.do(life, lambda core, queue=queue: operator.set_paused(core, queue, False))  # type: ignore[misc]
        for queue in set(life.core.state.queues) - set(self.world.plan.queues):  # what rude peers left
            self.do(life, lambda core, queue=queue: operator.purge(core, queue, 1000))  # type: ignore[misc]
        self.do(life, unschedule_all)
        self.do(life, drop_quarantine)

    def do(self, life: BrokerRun, change: Callable[[Core], object]) -> None:
        """Make a change as the admin socket does; when it is done, its facts must be kept."""
        lsn = 0

        def noted(core: Core) -> None:
            nonlocal lsn
            change(core)
            stuck = life.broker.committer.stuck_count
            lsn = self.world.chronicle.next_lsn - 1 + stuck + core.log.count

        def done() -> None:
            assert life.kept_lsn() >= lsn, "an operator's change is reported as done before it is kept"

        drive(life.broker.act(noted), done)


def unschedule_all(core: Core) -> None:
    for key in list(core.state.schedules_by_key):
        core.unschedule(key, BY_OPERATOR)


def drop_quarantine(core: Core) -> None:
    for message in list(core.state.quarantine.values()):
        core.cancel(message, DROPPED)


def drive(task: Coroutine[Any, Any, object], done: Callable[[], None]) -> None:
    """Run a coroutine to its only wait, and to its end when that is over."""
    future = task.send(None)

    def go_on(_: object) -> None:
        try:
            task.send(None)
        except StopIteration:
            done()

    future.add_done_callback(go_on)
