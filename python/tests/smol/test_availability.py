"""The order of the host checks (spec section 2)."""

import platform
import sys

import pytest
import smol
from smol import transport


class Answer:
    def __init__(self, available, code=None, reason=None):
        self.available, self.code, self.reason = available, code, reason


class Engine:
    def __init__(self, answer):
        self.answer = answer

    def local_availability(self):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def host(monkeypatch):
    """Sets what this host is like."""

    def set_up(answer=Answer(True), system="linux", machine="x86_64", libc=("glibc", "2.36")):
        monkeypatch.setattr(sys, "platform", system)
        monkeypatch.setattr(platform, "machine", lambda: machine)
        monkeypatch.setattr(platform, "libc_ver", lambda: libc)
        monkeypatch.setattr(transport, "engine", lambda: Engine(answer))

    return set_up


def test_AHostThatRunsMachinesIsAvailable(host):
    host()
    assert smol.local_availability() == (True, None, None)


@pytest.mark.parametrize(
    ("system", "machine"), [("win32", "x86_64"), ("linux", "riscv64"), ("darwin", "x86_64")]
)
def test_OtherPlatformsComeFirst(host, system, machine):
    host(RuntimeError("never asked"), system, machine)
    available, code, reason = smol.local_availability()
    assert (available, code) == (False, "UNSUPPORTED_PLATFORM") and reason


@pytest.mark.parametrize("libc", [("musl", "1.2"), ("", ""), ("glibc", "2.33"), ("glibc", "1.99")])
def test_OtherOrOlderCLibrariesAreUnsupported(host, libc):
    host(libc=libc)
    assert smol.local_availability()[1] == "UNSUPPORTED_PLATFORM"


@pytest.mark.parametrize("version", ["2.34", "2.100", "3.0", "unknown"])
def test_NewerAndUnreadableVersionsPass(host, version):
    host(libc=("glibc", version))
    assert smol.local_availability()[0]


@pytest.mark.parametrize("code", ["KVM_UNAVAILABLE", "HYPERVISOR_UNAVAILABLE", "RUNTIME_NOT_INSTALLED"])
def test_TheEnginesObstacleIsPassedOn(host, code):
    host(Answer(False, code, "why"))
    assert smol.local_availability() == (False, code, "why")


def test_ARefusalWithoutACodeIsTheHypervisors(host):
    host(Answer(False, None, "why"))
    assert smol.local_availability() == (False, "HYPERVISOR_UNAVAILABLE", "why")


def test_AnEngineThatThrowsIsNotInstalled(host):
    host(OSError("cannot load"))
    assert smol.local_availability()[:2] == (False, "RUNTIME_NOT_INSTALLED")


def test_AnEngineThatCannotBeLoadedIsNotInstalled(monkeypatch):
    monkeypatch.setitem(sys.modules, "holt", None)
    assert smol.local_availability()[:2] == (False, "RUNTIME_NOT_INSTALLED")
