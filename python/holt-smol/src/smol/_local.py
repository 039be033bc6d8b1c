"""One handle's view of a machine of the engine: boots it, and keeps its books."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from . import _lifetime
from ._engine import engine, engine_errors
from ._note import LABEL, Note
from ._plan import Plan
from .errors import SmolError

if TYPE_CHECKING:
    import holt

READY_TIMEOUT = 120.0
#: Seconds for what runs in a machine that is stopped. None at all would drop the memory of a paused one, of
#: which not all has been written to its disk.
STOP_GRACE = 10.0
_LEAST_STOP_GRACE = 0.001

#: Of the command of a life.
_WORKLOAD_KEY = "smol-workload"

#: The engine's states as this module shows them. Only ``running`` takes commands.
_STATES = {"running": "running", "paused": "paused", "suspended": "paused"}
_IDLE = ("created", "stopped", "suspended", "failed")


def shown_state(state: str) -> str:
    return _STATES.get(state, "stopped")


class LocalMachine:
    """A machine as one handle knows it. Thread-safe."""

    def __init__(self, machine: holt.Machine, note: Note) -> None:
        self.machine = machine
        self.name: str = machine.name
        self.note = note
        self._deleted = False  # by this handle: a later machine of the same name is another one
        self._born: datetime | None = None  # when the machine was made that this handle means
        self._expires = False  # this process deletes it when its time is up
        self._activity = _lifetime.activity_of(self.name)
        self._origin = _lifetime.Origin()

    # --- making and finding ---------------------------------------------------------------------------------

    @classmethod
    def create(cls, plan: Plan) -> LocalMachine:
        with engine_errors():
            image = plan.arguments["image"]
            if image is not None:
                # The time to readiness is the machine's: a large image may take longer to come.
                plan.arguments["image"] = engine().pull_image(image, pull="missing").reference
            machine = engine().Machine.create(
                plan.name, persistent=True, owner_end=_owner_end(plan.note), **plan.arguments
            )
        local = cls(machine, plan.note)
        try:
            local._own()
            local._start_workload()
        except BaseException:
            local.delete()
            raise
        return local

    @classmethod
    def connect(cls, name: str) -> LocalMachine:
        """Boots one that does not run, here and not at its first use: that may be a command with a timeout of
        its own, which a boot must not use up."""
        local, info = cls._find(name)
        if info.state not in _STATES and local._boot(READY_TIMEOUT):
            # Another process may have been faster: only the engine knows whose it is to end.
            _lifetime.keep(name, local.machine)
            local._expire()
        return local

    @classmethod
    def open(cls, name: str) -> LocalMachine:
        return cls._find(name)[0]

    @classmethod
    def _find(cls, name: str) -> tuple[LocalMachine, holt.MachineInfo]:
        with engine_errors():
            machine = engine().Machine.open(name)
            info = machine.info()
        local = cls(machine, Note.of(dict(info.labels)))
        local._born = info.created_at
        if local.note.is_expired():
            remove_if_there(machine)
            raise SmolError("NOT_FOUND", f"The machine {name} was deleted: its ttl_seconds are over")
        return local, info

    # --- states ---------------------------------------------------------------------------------------------

    def state(self) -> str:
        self._require_origin()
        if self._deleted:
            return "stopped"
        try:
            with engine_errors():
                return shown_state(self.machine.state())
        except SmolError as error:
            if error.code == "NOT_FOUND":
                return "stopped"
            raise

    def use(self) -> holt.Machine:
        """The engine's machine, for a call that needs it to run."""
        self._require_undeleted()
        return self.machine

    def _require_origin(self) -> None:
        if not self._origin.is_here():
            raise self._origin.refusal(f"This handle of the machine {self.name}")

    def _require_undeleted(self) -> None:
        self._require_origin()
        if self._deleted:
            raise SmolError("NOT_FOUND", f"The machine {self.name} was deleted")

    def start(self, timeout: float = READY_TIMEOUT) -> None:
        self._require_undeleted()
        if self._boot(timeout):
            self._own()

    def _boot(self, timeout: float) -> bool:
        """Boots, or resumes what was paused; false when it runs already."""
        with self._activity.booting:
            with engine_errors():
                state = self.machine.state()
                if state == "running":
                    return False
                self.machine.start(timeout=timeout, owner_end=_owner_end(self.note))
            if state not in _STATES:  # a paused machine still has its workload
                self._start_workload()
            return True

    def _start_workload(self) -> None:
        if self.note.command is not None:
            with engine_errors():
                # Once in each life: another process that boots the same machine brings the same key.
                self.machine.start_command(self.note.command, idempotency_key=_WORKLOAD_KEY)

    def _own(self) -> None:
        """The machine shall end with this process, unless it is detached."""
        with engine_errors():
            self._born = self.machine.info().created_at
        if not self.note.detach:
            _lifetime.own(self.name, self._end_with_process)
        self._expire()

    def _expire(self) -> None:
        """A process that starts a machine deletes it when its time is up, if it lives so long."""
        if self.note.expires_at is not None and not self._expires:
            self._expires = True
            _lifetime.expire(self.note.expires_at, self._delete_unless_replaced)

    async def _end_with_process(self) -> None:
        machine = engine().AsyncMachine(self.machine)
        if (await machine.info()).created_at != self._born:
            return  # somebody has deleted ours and given its name to another
        if self.note.ephemeral:
            await machine.remove(force=True)
        else:
            await machine.stop()

    def _delete_unless_replaced(self) -> None:
        if self.machine.info().created_at == self._born:
            self.delete()

    def stop(self, drain: float, grace: float) -> None:
        """What runs in it gets its signal and ``grace`` seconds to end, and is killed then."""
        self._require_origin()
        if self._deleted:
            return
        with self.closed(drain):
            try:
                with engine_errors():
                    self.machine.stop(max(grace, _LEAST_STOP_GRACE))
            except SmolError as error:
                if error.code != "NOT_FOUND":
                    raise
        self._idle()

    def _idle(self) -> None:
        """Nothing of it runs: of a machine that is kept there is nothing to end with this process."""
        if not self.note.ephemeral:
            _lifetime.disown(self.name)

    def pause(self) -> None:
        self._require_undeleted()
        with engine_errors():
            if self.machine.state() != "running":
                raise SmolError("CONFLICT", f"The machine {self.name} is not running, so it cannot be paused")
            self.machine.suspend()
        self._idle()

    def resume(self) -> None:
        self._require_undeleted()
        with engine_errors():
            if self.machine.state() not in ("paused", "suspended"):
                raise SmolError("CONFLICT", f"The machine {self.name} is not paused, so it cannot be resumed")
            self.machine.resume(owner_end=_owner_end(self.note))
        self._own()

    def delete(self, drain: float = 0.0) -> None:
        self._require_origin()
        if self._deleted:
            return
        with self.closed(drain):
            remove_if_there(self.machine)
        self._deleted = True
        _lifetime.disown(self.name)

    # --- use ------------------------------------------------------------------------------------------------

    @contextmanager
    def using(self) -> Iterator[holt.Machine]:
        """The running machine for one call, which a stop may wait for; errors come out in this module's
        codes."""
        self.enter()
        try:
            with engine_errors():
                yield self.use()
        finally:
            self.leave()

    def enter(self) -> None:
        self._require_origin()
        if not self._activity.enter():
            raise SmolError("INVALID_STATE", f"The machine {self.name} is being stopped, not running")

    def leave(self) -> None:
        if self._origin.is_here():
            self._activity.leave()

    @contextmanager
    def closed(self, drain: float) -> Iterator[None]:
        self._activity.close(drain)
        try:
            yield
        finally:
            self._activity.reopen()


def remove_if_there(machine: holt.Machine) -> None:
    try:
        with engine_errors():
            machine.remove(force=True)
    except SmolError as error:
        if error.code != "NOT_FOUND":
            raise


def remove_by_name(name: str) -> None:
    """The same; another process may have been faster."""
    try:
        with engine_errors():
            machine = engine().Machine.open(name)
    except SmolError as error:
        if error.code != "NOT_FOUND":
            raise
    else:
        remove_if_there(machine)


def sweep(infos: list[holt.MachineInfo]) -> list[holt.MachineInfo]:
    """Removes machines that nobody can want any more; gives the others."""
    kept = []
    for info in infos:
        note = Note.of(dict(info.labels)) if LABEL in info.labels else Note()
        if note.is_expired() or (note.is_abandoned() and info.state in _IDLE):
            remove_by_name(info.name)
        else:
            kept.append(info)
    return kept


def _owner_end(note: Note) -> Literal["keep", "stop", "remove"]:
    if note.detach:
        return "keep"
    return "remove" if note.ephemeral else "stop"
