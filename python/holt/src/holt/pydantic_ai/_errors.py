"""What an error of the engine means to a workspace."""

from __future__ import annotations

import errno
import os
import time

from pydantic_ai.workspaces import WorkspaceError, WorkspaceUnavailableError

import holt

_SETTLING = 3.0
_SETTLING_STEP = 0.01
_HOST_CODES = frozenset({"UNSUPPORTED_PLATFORM", "RUNTIME_NOT_INSTALLED", "KVM_UNAVAILABLE", "HYPERVISOR_UNAVAILABLE"})
_LOSSES = frozenset({"OUTCOME_UNKNOWN", "GUEST_LOST", "GUEST_PROTOCOL", "INVALID_STATE", "NOT_FOUND"})
_ERRNO = {
    "NOT_FOUND": errno.ENOENT,
    "NOT_A_DIRECTORY": errno.ENOTDIR,
    "IS_DIRECTORY": errno.EISDIR,
    "CONFLICT": errno.EEXIST,
    "PERMISSION_DENIED": errno.EACCES,
    "TOO_LARGE": errno.EFBIG,
    "STORAGE_FULL": errno.ENOSPC,
}


def is_about_a_path(error: holt.Error) -> bool:
    """True for an error at a path inside the machine; one about the machine itself names that."""
    return bool(error.subject) and str(error.subject).startswith("/")


def path_error(error: holt.Error, path: str) -> Exception:
    """The engine's error at a guest path as Python's own class of it; another error as it is."""
    if not is_about_a_path(error):
        return error
    if error.code == "NOT_REGULAR":
        # The file tools of the Harness know this refusal by how its text begins.
        return OSError(f"not a regular file: {path!r}")
    number = _ERRNO.get(error.code)
    return error if number is None else os_error(number, path)


def os_error(number: int, path: str) -> OSError:
    """`FileNotFoundError` and its kin, as the operating system's own calls raise them."""
    return OSError(number, os.strerror(number), path)


def gone(name: str) -> WorkspaceUnavailableError:
    """For a machine that is no longer there."""
    return WorkspaceUnavailableError(
        f"smol VM {name!r} is gone. It is not replaced; ask for a new one with workspace='new'."
    )


def gone_object(name: str) -> WorkspaceUnavailableError:
    """For a machine that was passed in as `sandbox` and is no longer there: another one is the program's to make."""
    return WorkspaceUnavailableError(
        f"The smol VM {name!r} passed as `sandbox` is not, or is no longer, a machine of this host. It is not replaced; "
        "HoltSandboxBackend only uses machines of this host."
    )


def acquisition_error(error: holt.Error, name: str, *, passed_in: bool) -> Exception:
    """Of making or opening a machine."""
    if error.code == "NOT_FOUND" and not is_about_a_path(error) and error.subject in (None, "", name):
        return gone_object(name) if passed_in else gone(name)
    return host_error(error)


def host_error(error: holt.Error) -> Exception:
    """A host that can run no machine makes the workspace unavailable; another error is passed on for a retry."""
    if error.code not in _HOST_CODES:
        return error
    return WorkspaceUnavailableError(f"No local smol VM on this host ({error.code}): {error}")


def working_dir_error(error: holt.Error, directory: str, name: str) -> WorkspaceError:
    """For a directory that cannot be made or entered."""
    return WorkspaceError(f"No working_dir {directory!r} in smol VM {name}: {error}")


def looks_lost(error: holt.Error) -> bool:
    """Whether the machine itself may have gone or stopped; `explained` finds out."""
    return error.code in _LOSSES and not is_about_a_path(error)


def explained(machine: holt.Machine, error: holt.Error) -> Exception:
    """An error that says that the machine is gone or down, where it is; else the error as it is. Blocks."""
    if not looks_lost(error):
        return error
    state = _settled_state(machine)
    if state is None:
        return gone(machine.name)
    if state != "running":
        return WorkspaceUnavailableError(
            f"smol VM {machine.name!r} does not run but is {state}; someone stopped or deleted it."
        )
    return error


def _settled_state(machine: holt.Machine) -> str | None:
    """The state after a failed request; None when the machine is gone.

    A machine that is being ended still passes for running for a moment: one that answers is.
    """
    end = time.monotonic() + _SETTLING
    state = "running"
    while True:
        late = time.monotonic() >= end
        try:
            state = machine.state()
            if late or state not in ("starting", "stopping", "running"):
                return state
            if state == "running":
                machine.ping(timeout=max(_SETTLING_STEP, end - time.monotonic()))
                return state
        except holt.Error as error:
            if error.code == "NOT_FOUND":
                return None
            if late:
                return state
        time.sleep(_SETTLING_STEP)
