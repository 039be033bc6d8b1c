"""The capability that supplies a machine to an agent's run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import UserError
from pydantic_ai.tools import AgentDepsT, RunContext
from pydantic_ai.workspaces import WorkspaceBackend, WorkspaceRef

import holt
from holt.pydantic_ai._backend import HoltSandboxBackend
from holt.pydantic_ai._loops import result_of, turns
from holt.pydantic_ai._settings import IDLE_STOP, PROVIDER, Settings, check_ref


@dataclass(kw_only=True)
class HoltSandbox(AbstractCapability[AgentDepsT]):
    """Supplies a microVM of this host as the run's workspace.

    A run without a ref makes a machine at the first use of its workspace; a ref, from the history or given as
    `workspace=`, leads back to it. Refs reach only machines that such a capability named. Tools come from others:
    `Coder`, `Shell`, `FileSystem`, or your own.

    The options but `working_dir`, `env`, `require_kvm` and `host` shape a new machine only; attaching changes no
    machine. Options of a wrong type or out of range are a `UserError` at construction.
    """

    image: str | None = None
    """Image of a new machine, such as `python:3.12-alpine`; the engine's default image when None."""

    cpus: int | None = None
    """Virtual CPUs of a new machine; the engine's default when None."""

    memory_mb: int | None = None
    """Memory of a new machine in MiB; the engine's default when None."""

    disk_gb: int | None = None
    """Disk of a new machine in GiB; the engine's default when None."""

    user: str | None = None
    """User of a new machine's commands and file operations, a name or `uid[:gid]`; the image's when None."""

    allow_internet_access: bool = False
    """Whether a new machine gets a network that reaches every host; without it, it has none."""

    allow_hosts: Sequence[str] = ()
    """Hosts that a new machine may reach, and no others."""

    working_dir: str | None = "/workspace"
    """Absolute directory in which commands start, made when it is missing; None: the machine's own."""

    env: Mapping[str, str] | None = field(default=None, repr=False)
    """Variables of every command, also in a machine attached to. Nothing of the host's environment is passed."""

    labels: Mapping[str, str] | None = None
    """Labels of a new machine."""

    idle_stop: float | None = IDLE_STOP
    """Seconds without client and user process after which a new machine stops, flushed; None: never.

    The next use starts it again with its files."""

    require_kvm: bool = False
    """Refuse to work where no hardware virtualization isolates the machine."""

    host: holt.HostOptions | None = field(default=None, repr=False)
    """Folders and programs of the engine; None: as the environment says."""

    def __post_init__(self) -> None:
        if self.defer_loading:
            raise UserError(
                "HoltSandbox cannot be deferred (`defer_loading=True`): a run chooses its workspace before it loads "
                "deferred capabilities."
            )
        try:
            self._settings()
        except (TypeError, ValueError) as error:
            raise UserError(str(error)) from error

    def get_workspace(self, ctx: RunContext[AgentDepsT], *, ref: WorkspaceRef | None) -> WorkspaceBackend | None:
        """The backend of a run; None for a ref of another provider. Does nothing to any machine yet."""
        del ctx
        if ref is not None and ref.provider != PROVIDER:
            return None
        if ref is not None:
            return self.backend(ref)
        return HoltSandboxBackend(**self._options())

    def backend(self, ref: WorkspaceRef) -> HoltSandboxBackend:
        """A backend that attaches at its first use. `ValueError` for a ref that is no sandbox's."""
        check_ref(ref)
        return HoltSandboxBackend(
            ref=ref, working_dir=self.working_dir, env=self.env, require_kvm=self.require_kvm, host=self.host
        )

    async def destroy(self, ref: WorkspaceRef) -> None:
        """Remove a machine with its disk, without booting it; quiet when it is gone.

        A boot of it that is under way in this process ends first, and a removal that has begun is finished also when
        the caller is cancelled.
        """
        check_ref(ref)
        await result_of(turns.start(ref.id, lambda: _remove(ref.id, self.host)))

    def _options(self) -> dict[str, Any]:
        return {option.name: getattr(self, option.name) for option in fields(Settings)}

    def _settings(self) -> Settings:
        return Settings(**self._options())


def _remove(name: str, host: holt.HostOptions | None) -> None:
    try:
        holt.Machine.open(name, host=host).remove(force=True)
    except holt.Error as error:
        if error.code != "NOT_FOUND":
            raise
