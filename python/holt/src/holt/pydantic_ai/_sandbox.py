"""The machine behind a backend: made or attached once, whoever asks first, and started again when it has stopped."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeVar

import anyio.to_thread

from pydantic_ai.workspaces import WorkspaceRef

import holt
from holt._requests import check_process
from holt.pydantic_ai import _errors
from holt.pydantic_ai._loops import result_of, turns
from holt.pydantic_ai._settings import PROVIDER, Settings, new_name

T = TypeVar("T")

# The name under which programs that keep the record of their machines look for it.
_logger = logging.getLogger("pydantic_ai_harness.smol_sandbox._backend")


@dataclass(frozen=True)
class Ready:
    """A machine that is ready for use."""

    machine: holt.AsyncMachine
    working_dir: str
    """Absolute, links resolved."""


class Sandbox:
    """Thread-safe; any number of tasks of any event loops may use one."""

    def __init__(self, settings: Settings, *, machine: holt.Machine | None, ref: WorkspaceRef | None) -> None:
        self.settings = settings
        self._machine = machine
        self._ref = ref if machine is None else WorkspaceRef(provider=PROVIDER, id=machine.name)
        self._lock = threading.Lock()
        self._ready: Ready | None = None
        self._acquisition: Future[Ready] | None = None

    @property
    def ref(self) -> WorkspaceRef | None:
        return self._ref

    async def acquire(self) -> Ready:
        """Makes or attaches the machine where that is still to be done; concurrent callers share one attempt.

        A caller that is cancelled leaves, the boot goes on. After a failure the next call tries again.
        """
        check_process()  # a forked child's lock may be held, and its attempt be made, by a thread that is not there
        with self._lock:
            if self._ready is not None:
                return self._ready
            if self._acquisition is None or self._acquisition.done():
                self._acquisition = self._begin()
            acquisition = self._acquisition
        return await result_of(acquisition)

    async def use(self, work: Callable[[Ready], Awaitable[T]]) -> T:
        """`work` on the machine. One that has stopped while nobody used it is started, and `work` called again."""
        ready = await self.acquire()
        try:
            return await work(ready)
        except holt.Error as error:
            if not await self._start_again(ready, error):
                await _raise_explained(ready, error)
        try:
            return await work(ready)
        except holt.Error as error:
            await _raise_explained(ready, error)

    def _begin(self) -> Future[Ready]:
        if self._ref is not None:
            return turns.start(self._ref.id, self._attach)
        # Known before anything is made: whoever holds the ref can destroy what a cancelled run began.
        self._ref = WorkspaceRef(provider=PROVIDER, id=new_name())
        _logger.info("Creating smol VM %s", self._ref.id)
        return turns.start(self._ref.id, partial(self._create, self._ref.id))

    def _create(self, name: str) -> Ready:
        try:
            machine = holt.Machine.create(name, host=self.settings.host_options, **self.settings.of_new_machine())
        except BaseException as error:
            with self._lock:
                self._ref = None
            if isinstance(error, holt.Error):
                raise _errors.host_error(error) from error
            raise
        return self._prepare(machine)

    def _attach(self) -> Ready:
        assert self._ref is not None
        name = self._ref.id
        machine = self._machine
        try:
            if machine is None:
                machine = holt.Machine.connect(name, host=self.settings.host_options)
            else:
                machine.start()
            if self.settings.require_kvm and machine.info().accelerator != "kvm":
                raise holt.KvmUnavailableError(f"{name} runs without KVM, and require_kvm is set", subject=name)
        except holt.Error as error:
            raise _errors.acquisition_error(error, name, passed_in=self._machine is not None) from error
        return self._prepare(machine)

    def _prepare(self, machine: holt.Machine) -> Ready:
        directory = self.settings.working_dir
        try:
            if directory is None:
                directory = machine.info().working_dir or "/"
            else:
                machine.make_dir(directory)
            ready = Ready(machine=holt.AsyncMachine(machine), working_dir=machine.realpath(directory))
        except holt.Error as error:
            if _errors.is_about_a_path(error):
                raise _errors.working_dir_error(error, str(directory), machine.name) from error
            raise _errors.explained(machine, error) from error
        with self._lock:
            self._ready = ready
        return ready

    async def _start_again(self, ready: Ready, error: holt.Error) -> bool:
        if error.code != "INVALID_STATE" or not error.retryable:
            return False
        machine = ready.machine.sync

        def start() -> bool:
            try:
                # One that failed or that somebody paused is not ours to start. Another caller may have started it
                # meanwhile; a stop under way, of the idle limit for one, is waited for by start().
                if machine.state() in ("created", "failed", "paused"):
                    return False
                machine.start()
            except holt.Error as failure:
                raise _errors.explained(machine, failure) from failure
            return True

        return await result_of(turns.start(machine.name, start))


async def _raise_explained(ready: Ready, error: holt.Error) -> NoReturn:
    if not _errors.looks_lost(error):
        raise error
    explain = partial(_errors.explained, ready.machine.sync, error)
    explained = await anyio.to_thread.run_sync(explain, abandon_on_cancel=True)
    if explained is error:
        raise error
    raise explained from error
