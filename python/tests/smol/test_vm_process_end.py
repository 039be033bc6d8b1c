"""What becomes of machines when the process that made them ends (spec section 7)."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import smol
from conftest import find_processes


def program(body):
    return [sys.executable, "-c", "import os, signal, sys, threading, smol\n" + textwrap.dedent(body)]


def run(body, *, code=0):
    done = subprocess.run(program(body), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout


def state(name):
    [found] = [machine.state for machine in smol.Machine.list() if machine.name == name] or ["deleted"]
    return found


def wait_for_state(name, wanted):
    deadline = time.monotonic() + 60
    while state(name) != wanted:
        assert time.monotonic() < deadline, f"{name} is {wanted}, not {state(name)}"
        time.sleep(0.1)


def test_APersistentMachineIsStoppedAndKeepsWhatWasWritten(home, name):
    run(f"""
        made = smol.Machine.create(smol.MachineConfig(name={name!r}, persistent=True))
        made.exec(["sh", "-c", "echo kept > /root/note"])
    """)
    assert state(name) == "stopped"
    with smol.Machine.connect(name) as again:
        assert again.read_file("/root/note") == b"kept\n"


@pytest.mark.parametrize("end", ["signal.SIGKILL", "signal.SIGTERM"])
def test_AKilledProcessStopsItsPersistentMachineAndLosesNothing(home, name, end):
    run(
        f"""
        made = smol.Machine.create(smol.MachineConfig(name={name!r}, persistent=True))
        made.exec(["sh", "-c", "echo kept > /root/note"])
        os.kill(os.getpid(), {end})
        threading.Event().wait()
        """,
        code=-getattr(signal, end.removeprefix("signal.")),
    )
    wait_for_state(name, "stopped")
    with smol.Machine.connect(name) as again:
        assert again.read_file("/root/note") == b"kept\n"


def test_AnEphemeralMachineIsDeleted(home, name):
    run(f"smol.Machine.create(smol.MachineConfig(name={name!r}))")
    assert state(name) == "deleted"


def test_AKilledProcessLeavesNoEphemeralMachine(home, name):
    run(
        f"""
        smol.Machine.create(smol.MachineConfig(name={name!r}))
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()
        """,
        code=-signal.SIGKILL,
    )
    wait_for_state(name, "deleted")


def test_ADetachedMachineGoesOnAndLaterStartsAreDetachedToo(home, name):
    run(f"smol.Machine.create(smol.MachineConfig(name={name!r}, detach=True))")
    assert state(name) == "running"
    run(f"""
        machine = smol.Machine.open({name!r})
        machine.stop()
        machine.start()
    """)
    assert state(name) == "running"
    smol.Machine.delete_by_name(name)


def test_AMachineThatWasOnlyFoundGoesOn(machine):
    run(f"""
        for find in (smol.Machine.connect, smol.Machine.open):
            assert find({machine.name!r}).exec(["true"]).success
    """)
    assert machine.state() == "running"


def test_AMachineThatAConnectBootedEndsWithItsProcess(home, name):
    smol.Machine.create(smol.MachineConfig(name=name, persistent=True)).stop()
    run(f"""
        import gc
        smol.Machine.connect({name!r}).exec(["sh", "-c", "echo kept > /root/note"])
        gc.collect()
        assert smol.Machine.open({name!r}).state() == "running"
    """)
    wait_for_state(name, "stopped")
    with smol.Machine.connect(name) as again:
        assert again.read_file("/root/note") == b"kept\n"


def test_AMachineGoesOnWhenItsHandleIsCollected(home, name):
    run(f"""
        import gc
        smol.Machine.create(smol.MachineConfig(name={name!r}, persistent=True))
        gc.collect()
        assert smol.Machine.open({name!r}).state() == "running"
    """)
    smol.Machine.delete_by_name(name)


def test_AnInterpreterEndsWithStreamsOpen(home, name):
    run(f"""
        made = smol.Machine.create(smol.MachineConfig(name={name!r}))
        stream = made.exec_stream(["sh", "-c", "echo up; exec sleep 300"])
        assert next(stream)["data"] == "up\\n"
        threading.Thread(target=lambda: list(stream), daemon=True).start()
    """)
    assert state(name) == "deleted"


def test_front_24_AForkedChildOwnsNothingAndItsEndStopsNothing(home, name):
    out = run(f"""
        made = smol.Machine.create(smol.MachineConfig(name={name!r}, persistent=True))
        child = os.fork()
        if child == 0:
            try:
                made.exec(["true"])
            except smol.SmolError as error:
                print(error.code, "fork" in str(error), flush=True)
            sys.exit(0)
        os.waitpid(child, 0)
        print(made.state(), made.exec(["echo", "alive"]).stdout.strip())
    """)
    assert out == "INVALID_STATE True\nrunning alive\n"
    smol.Machine.delete_by_name(name)


def test_front_24_AForkedChildThatEndsLeavesTheParentsStreamsAlone(home, name):
    out = run(f"""
        made = smol.Machine.create(smol.MachineConfig(name={name!r}))
        stream = made.exec_stream(["sh", "-c", "echo up; sleep 2; echo whole"])
        assert next(stream)["data"] == "up\\n"
        child = os.fork()
        if child == 0:
            assert next(stream)["message"].startswith("[INVALID_STATE] ")
            stream.kill()
            sys.exit(0)
        os.waitpid(child, 0)
        print([event.get("data", event.get("exit_code")) for event in stream])
    """)
    assert out == "['whole\\n', 0]\n"


def test_ACreateThatOutlivesItsEventLoopLeavesNothing(home, name):
    run(f"""
        import asyncio

        async def main():
            asyncio.create_task(smol.AsyncMachine.create(smol.MachineConfig(name={name!r}, persistent=True)))
            await asyncio.sleep(0.2)

        asyncio.run(main())
    """)
    assert state(name) == "deleted"


def test_AnInterruptedCreateLeavesNothing(home, name):
    out = run(f"""
        made = None
        threading.Timer(0.2, signal.raise_signal, (signal.SIGINT,)).start()
        try:
            made = smol.Machine.create(smol.MachineConfig(name={name!r}, persistent=True))
            threading.Event().wait(5)
        except KeyboardInterrupt:
            if made is not None:  # it was faster
                made.delete()
            print([machine.name for machine in smol.Machine.list() if machine.name == {name!r}])
    """)
    assert out == "[]\n"


def test_front_24_AnInterruptEndsABlockingCallAtOnce(home, machine):
    marker = "2661"
    done = subprocess.Popen(
        program(f"""
            machine = smol.Machine.open({machine.name!r})
            print("ready", flush=True)
            try:
                machine.exec(["sleep", {marker!r}])
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        """),
        stdout=subprocess.PIPE,
        text=True,
    )
    with done:
        assert done.stdout.readline() == "ready\n"
        deadline = time.monotonic() + 60
        while not machine.exec(find_processes(marker)).stdout:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        began = time.monotonic()
        os.kill(done.pid, signal.SIGINT)
        assert done.stdout.readline() == "interrupted\n"
        assert time.monotonic() - began < 60
        assert done.wait(30) == 0


def test_front_24_ASpawnedProcessUsesMachinesByName(machine, tmp_path):
    work = tmp_path / "work.py"
    work.write_text(
        textwrap.dedent(
            """
            import multiprocessing, sys, smol

            def read(name):
                return smol.Machine.open(name).exec(["echo", "spawned"]).stdout

            if __name__ == "__main__":
                here = smol.Machine.open(sys.argv[1])
                assert here.exec(["true"]).success
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    print(pool.apply(read, (sys.argv[1],)), end="")
            """
        )
    )
    done = subprocess.run(
        [sys.executable, work, machine.name], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stdout) == (0, "spawned\n"), done.stderr
    assert machine.state() == "running"
