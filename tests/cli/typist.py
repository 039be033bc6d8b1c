#!/usr/bin/env python3
"""Runs a program on a terminal of its own and types into it.

typist.py ROWS COLUMNS [EXPECT TYPE]... -- PROGRAM ARGUMENT...

Waits for each text EXPECT in what comes, then types TYPE (with \\x03 and so on understood). Prints all that came, and
at last "[code N]" and, when the terminal has its settings of before, "[restored]". TYPE may be "!resize R C", "!kill SIGNAL"
(to the program) or "!run COMMAND" (of the shell here).
"""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

LIMIT = 180


def set_size(fd: int, rows: int, columns: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def act(master: int, pid: int, text: str) -> None:
    words = text.split()
    if words and words[0] == "!resize":
        set_size(master, int(words[1]), int(words[2]))
    elif words and words[0] == "!kill":
        os.kill(pid, getattr(signal, "SIG" + words[1]))
    elif words and words[0] == "!run":
        subprocess.run(text[len("!run ") :], shell=True, check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    else:
        os.write(master, text.encode("latin-1").decode("unicode_escape").encode("latin-1"))


def main() -> int:
    arguments = sys.argv[1:]
    end = arguments.index("--")
    rows, columns, *script = arguments[:end]
    master, slave = pty.openpty()
    set_size(master, int(rows), int(columns))
    before = termios.tcgetattr(slave)
    program = subprocess.Popen(
        arguments[end + 1 :], stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    output = b""
    seen = 0
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if script and script[0].encode() in output[seen:]:
            seen = output.index(script[0].encode(), seen) + len(script[0].encode())
            act(master, program.pid, script[1])
            script = script[2:]
            continue
        ended = program.poll() is not None
        ready, _, _ = select.select([master], [], [], 0 if ended else 0.05)
        if ready:
            output += os.read(master, 65536)
        elif ended:
            break
    else:
        program.kill()
        print("[too late]")
    sys.stdout.buffer.write(output.replace(b"\r\n", b"\n"))
    print(f"\n[code {program.wait()}]")
    if termios.tcgetattr(slave) == before:
        print("[restored]")
    return 0


sys.exit(main())
