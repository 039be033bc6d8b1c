"""Cloud, GPU and training calls can be imported and refuse at once (marks NOSUP of the spec)."""

import asyncio
import inspect

import pytest
import smol
from smol._local import LocalMachine
from smol._note import Note
from smol.tunnel import TunnelEndpoint


class EngineMachine:
    name = "m"


@pytest.fixture
def machine():
    return smol.Machine(LocalMachine(EngineMachine(), Note()))


REFUSED = {
    "assign": ("lease",),
    "branch": ("n",),
    "branch_batch": (2,),
    "checkpoint": ("/tmp/c",),
    "checkpoints": (),
    "export_artifact": (),
    "fork": ("n",),
    "fork_batch": (2,),
    "job": ("j",),
    "jobs": (),
    "pack": ("/tmp/p",),
    "port_links": (),
    "publish": (80,),
    "publish_cache_disk": (),
    "request": (80,),
    "revoke_port_links": (),
    "reward_fork": (["true"],),
    "run": ("alpine", ["true"]),
    "share": (),
    "start_job": (["true"],),
    "unpublish": (80,),
    "unshare": (),
    "usage": (),
    "export_checkpoint": ("a", "b"),
    "prune_checkpoint_store": ("s",),
    "upload_checkpoint": ("p",),
    "probe": (),
}


@pytest.mark.parametrize("call", REFUSED)
def test_ACallThatTheEngineHasNotRefuses(machine, call):
    with pytest.raises(smol.NotSupportedError) as caught:
        getattr(machine, call)(*REFUSED[call])
    assert ":" in str(caught.value), "the message names the alternative"


@pytest.mark.parametrize("call", REFUSED)
def test_TheAsynchronousTwinRefusesToo(machine, call):
    async def use():
        answer = getattr(smol.AsyncMachine(machine), call)(*REFUSED[call])
        if inspect.isawaitable(answer):
            await answer

    with pytest.raises(smol.NotSupportedError):
        asyncio.run(use())


@pytest.mark.parametrize(
    "kind",
    [
        smol.Episode,
        smol.AsyncEpisode,
        smol.Job,
        smol.AsyncJob,
        smol.RolloutClient,
        smol.DeviceAdapterBundle,
        smol.DeviceAdapterServer,
    ],
)
def test_NoObjectOfACloudClassIsMade(kind):
    with pytest.raises(smol.NotSupportedError):
        kind()


@pytest.mark.parametrize(
    "call",
    [
        lambda: smol.CacheDisk.create("d"),
        lambda: smol.CacheDisk.list(),
        lambda: smol.CacheDisk.get("d"),
        lambda: smol.CacheDisk.delete("d"),
        lambda: smol.adapter_sha256("/tmp"),
        lambda: smol.publish_device_adapter({}, {}),
    ],
)
def test_CloudFunctionsRefuse(call):
    with pytest.raises(smol.NotSupportedError):
        call()


def test_ARolloutErrorIsARuntimeError():
    error = smol.RolloutError(503, "BUSY", "later")
    assert isinstance(error, RuntimeError)
    assert (error.status, error.code, error.message) == (503, "BUSY", "later")


def test_WhatIsWrongWithArgumentsIsSaidFirst(machine, tmp_path):
    there = tmp_path / "there.smolcheckpoint"
    there.touch()
    cases = [
        (lambda: machine.branch_batch(), ValueError, "INVALID_CONFIG"),
        (lambda: machine.fork_batch(), ValueError, "INVALID_CONFIG"),
        (lambda: machine.checkpoint(), smol.InvalidConfigError, "INVALID_CONFIG"),
        (lambda: machine.publish(80, protocol="sctp"), smol.InvalidConfigError, "INVALID_CONFIG"),
        (lambda: machine.unpublish(), smol.InvalidConfigError, "INVALID_CONFIG"),
        (lambda: machine.endpoint(80), smol.InvalidConfigError, "INVALID_CONFIG"),
        (lambda: machine.delete(include_usage=True), smol.NotSupportedError, "NOT_SUPPORTED"),
        (lambda: machine.resize(), smol.SmolError, "SMOLVM_ERROR"),
        (lambda: smol.Machine.restore_checkpoint("", "n"), smol.InvalidConfigError, "INVALID_CONFIG"),
        (lambda: smol.Machine.restore_checkpoint("x", ""), smol.InvalidConfigError, "INVALID_CONFIG"),
        (
            lambda: smol.Machine.restore_checkpoint("x", "n", cache_disk=smol.CacheDiskRef("c")),
            smol.InvalidConfigError,
            "INVALID_CONFIG",
        ),
        (
            lambda: smol.Machine.restore_checkpoint("/none.smolcheckpoint", "n"),
            smol.SmolError,
            "CONFIG_ERROR",
        ),
        (lambda: smol.Machine.restore(str(there), "n"), smol.NotSupportedError, "NOT_SUPPORTED"),
        (lambda: smol.Machine.delete_checkpoint("/none.smolcheckpoint"), smol.SmolError, "NOT_FOUND"),
        (lambda: smol.Machine.delete_checkpoint(str(there)), smol.NotSupportedError, "NOT_SUPPORTED"),
    ]
    for call, kind, code in cases:
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.code == code


def test_WhatNeedsNoPortAnswersHonestly(machine):
    assert machine.ports() == []
    assert machine.url() is None
    assert machine.ready_at() is None
    assert machine.sync() is None


def test_ATunnelRefusesBadPortsAsValuesAndGoodOnesAsUnsupported(machine):
    async def enter(port):
        async with smol.AsyncMachine(machine).tunnel(port):
            pass

    for port in (0, 65536, "80", True):
        with pytest.raises(ValueError):
            asyncio.run(enter(port))
    with pytest.raises(smol.NotSupportedError):
        asyncio.run(enter(80))
    assert TunnelEndpoint("127.0.0.1", 80).port == 80
