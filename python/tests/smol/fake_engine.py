"""A made-up package `holt` whose machines only have states: for tests of what a handle decides by itself."""

import threading
from datetime import UTC, datetime
from types import SimpleNamespace


class Error(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message, self.hint, self.causes, self.retryable = code, message, None, [], False


class NotFoundError(Error):
    def __init__(self, message):
        super().__init__("NOT_FOUND", message)


class TimeoutError(Error):
    pass


class Engine:
    Error = Error
    NotFoundError = NotFoundError
    TimeoutError = TimeoutError

    def __init__(self):
        self.machines = {}
        self.boots = []
        self.made = 0
        self.workloads = []
        self.workload_keys = {}
        self.graces = []
        self.refuse_boots = None
        self.boot_begun = threading.Event()
        self.boots_overlap = threading.Event()
        self.boot_goes_on = threading.Event()  # cleared: a boot waits for it
        self.boot_goes_on.set()
        self.Machine = SimpleNamespace(create=self._create, open=self._open, list=self._list)

    def AsyncMachine(self, machine):
        return AsyncMachine(machine)

    def add(self, name, state="stopped", labels=None):
        self.made += 1
        created_at = datetime(2026, 1, 2, 3, 4, self.made, tzinfo=UTC)
        self.machines[name] = SimpleNamespace(state=state, labels=labels or {}, created_at=created_at)
        return name

    def _create(self, name, *, labels, **_):
        if name in self.machines:
            raise Error("CONFLICT", f"The name {name} is taken")
        self.add(name, "created", labels)
        machine = Machine(self, name)
        machine.start()
        return machine

    def _open(self, name):
        if name not in self.machines:
            raise NotFoundError(f"There is no machine {name}")
        return Machine(self, name)

    def _list(self):
        return [Machine(self, name).info() for name in sorted(self.machines)]


class Machine:
    def __init__(self, engine, name):
        self.engine, self.name = engine, name

    def _record(self):
        try:
            return self.engine.machines[self.name]
        except KeyError:
            raise NotFoundError(f"There is no machine {self.name}") from None

    def state(self):
        return self._record().state

    def info(self):
        record = self._record()
        return SimpleNamespace(
            name=self.name,
            state=record.state,
            labels=record.labels,
            image="holt/default:latest",
            persistent=True,
            created_at=record.created_at,
            pid=None,
            cpus=2,
            memory_mb=1024,
            disk_gb=20,
        )

    def start(self, *, owner_end="keep", timeout=None):
        record = self._record()
        self.engine.boots.append((self.name, owner_end))
        if self.engine.refuse_boots:
            record.state = "failed"
            raise self.engine.refuse_boots
        if self.engine.boot_begun.is_set() and not self.engine.boot_goes_on.is_set():
            self.engine.boots_overlap.set()
        self.engine.boot_begun.set()
        assert self.engine.boot_goes_on.wait(60)
        self._record().state = "running"

    def stop(self, grace=10.0):
        self._record().state = "stopped"
        self.engine.workload_keys.pop(self.name, None)
        self.engine.graces.append(grace)

    def remove(self, force=False):
        self._record()
        del self.engine.machines[self.name]

    def suspend(self):
        self._record().state = "suspended"

    def resume(self, *, owner_end="keep"):
        self._record().state = "running"

    def start_command(self, argv, *, idempotency_key):
        keys = self.engine.workload_keys.setdefault(self.name, set())
        if idempotency_key not in keys:
            keys.add(idempotency_key)
            self.engine.workloads.append(argv)

    def exec_stream(self, argv, **_):
        if self.state() != "running":
            raise Error("INVALID_STATE", f"The machine {self.name} is {self.state()}, not running")
        raise Error("NOT_SUPPORTED", "no commands here")


class AsyncMachine:
    def __init__(self, machine):
        self.machine = machine

    async def info(self):
        return self.machine.info()

    async def stop(self):
        self.machine.stop()

    async def remove(self, force=False):
        self.machine.remove(force)
