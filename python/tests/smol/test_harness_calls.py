"""The calls that Pydantic AI's SmolSandbox makes of this module, in its order (spec section 8)."""

import threading
import time
import uuid

import pytest
import smol

SCRIPT = 'exec "$@" < /dev/null'


@pytest.fixture(scope="module")
def conn():
    return smol.ConnectOptions(target="local")


@pytest.fixture(scope="module")
def booted(home, conn):
    resources = smol.ResourceSpec(cpus=1, memory_mb=512, network=False)
    config = smol.MachineConfig(
        name="pydantic-ai-" + uuid.uuid4().hex, image=None, resources=resources, persistent=True
    )
    machine = smol.Machine.create(config, conn)
    yield machine
    machine.delete()


def run(machine, program, *arguments, env=None, workdir=None, timeout=None):
    """As the harness runs a program: through a shell that replaces itself, read by next(stream, None)."""
    options = smol.ExecOptions(env=env, workdir=workdir, timeout=timeout)
    stream = machine.exec_stream(["/bin/sh", "-c", SCRIPT, "sh", program, *arguments], options)
    out, code = "", None
    while (event := next(stream, None)) is not None:
        if event["kind"] == "error":
            raise smol.wrap_native_error(RuntimeError(event["message"]))
        if event["kind"] == "exit":
            code = event["exit_code"]
        else:
            out += event["data"]
    stream.close()
    return code, out


def test_TheFirstCommandsMakeAndEnterTheWorkingFolder(booted):
    assert run(booted, "mkdir", "-p", "/workspace", timeout=60) == (0, "")
    assert run(booted, "pwd", "-P", workdir="/workspace", timeout=60) == (0, "/workspace\n")


def test_EnvironmentAndTimeoutTravel(booted):
    assert run(booted, "sh", "-c", "echo $A", env={"A": "b"}, timeout=30) == (0, "b\n")
    assert run(booted, "sleep", "300", timeout=0.3) == (124, "")


@pytest.mark.parametrize(
    "utility", ["sh", "test", "printf", "base64", "cp", "dd", "mv", "rm", "mkdir", "find", "wc", "readlink"]
)
def test_TheDefaultImageHasTheUtilitiesOfItsFileOperations(booted, utility):
    assert run(booted, "sh", "-c", f"command -v {utility}")[0] == 0


def test_FilesTravelInPiecesOf64Kibibytes(booted):
    piece = "QUJD" * 12_288  # 48 KiB of base64 text in one argument
    assert run(booted, "sh", "-c", 'printf %s "$1" | base64 -d > /tmp/piece', "sh", piece) == (0, "")
    code, text = run(booted, "sh", "-c", "dd if=/tmp/piece bs=65536 count=1 2>/dev/null | base64 -w0")
    assert (code, text) == (0, piece)


def test_AMissingFolderIsToldByItsText(booted):
    with pytest.raises(smol.SmolError) as caught:
        run(booted, "true", workdir="/no/such")
    assert "No such file or directory" in str(caught.value)
    assert booted.state() == "running"


def test_ClosingTheStreamFreesTheWorkerThread(booted):
    stream = booted.exec_stream(["/bin/sh", "-c", SCRIPT, "sh", "sleep", "300"])
    seen = []
    worker = threading.Thread(target=lambda: seen.append(next(stream, None)))
    worker.start()
    stream.close()
    worker.join(10)
    assert seen == [None]


def test_AHandleIsFoundAgainByIdAndServesAsAnAsynchronousOne(booted, conn):
    attached = smol.Machine.connect(booted.id, conn)
    assert attached.state() == "running"
    assert smol.AsyncMachine(attached).id == booted.id
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.connect("pydantic-ai-" + "0" * 32, conn)
    assert caught.value.code == "NOT_FOUND"


def test_front_27_TheHostsAvailabilityIsKnownAtOnce(booted):
    began = time.monotonic()
    assert smol.local_availability() == (True, None, None)
    assert time.monotonic() - began < 15


def test_front_27_AProgramWrittenForSmolRunsAsItIs(home, name):
    config = smol.MachineConfig(
        name=name,
        resources=smol.ResourceSpec(cpus=1, memory_mb=256, network=False),
        env={"GREETING": "hello"},
        workdir="/app",
        labels={"kind": "test"},
    )
    with smol.Machine.create(config) as machine:
        machine.write_file("/app/main.py", "import os, sys; print(os.environ['GREETING'], sys.stdin.read())")
        result = machine.exec(["python3", "main.py"], smol.ExecOptions(stdin="world", timeout=60))
        assert result.assert_success().output == "hello world\n"
        with pytest.raises(smol.ExecutionError):
            machine.exec(["false"]).assert_success(["false"])
        with machine.exec_stream(["sh", "-c", "echo streamed"]) as stream:
            assert [event["kind"] for event in stream] == ["stdout", "exit"]
        assert machine.read_file("/app/main.py").startswith(b"import os")
        assert [one.labels for one in smol.Machine.list(labels={"kind": "test"})] == [{"kind": "test"}]
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.open(name)
    assert caught.value.code == "NOT_FOUND"


def test_DestroyIsConnectAndDelete(home, conn):
    name = "pydantic-ai-" + uuid.uuid4().hex
    smol.Machine.create(smol.MachineConfig(name=name, persistent=True), conn).stop()
    smol.Machine.connect(name, conn).delete()
    with pytest.raises(smol.SmolError) as caught:
        smol.Machine.connect(name, conn).delete()
    assert caught.value.code == "NOT_FOUND"
