"""Every deliberate error of dragoman, each with a stable code.

Three kinds of errors, each in one form:

- a *refusal* is a value: the core returns one of the codes in `model.enums.REFUSAL_CODES`, nothing is raised;
- a *peer's fault* is a `PeerError` (module `connections`): its connection ends, no other peer is affected;
- an *operator's fault* (a bad setting, a damaged file, a busy port) is an `OperatorError` (module `operators`): the
  command ends with its text and its exit code.

Our own faults are assertions. A code is on the wire, in facts, in logs and in docs/reference/errors.md; it never changes.
"""

from __future__ import annotations

from dragoman.errors.connections import *  # noqa: F403 - each class of these modules is one of the package's errors
from dragoman.errors.kinds import *  # noqa: F403
from dragoman.errors.operators import *  # noqa: F403
