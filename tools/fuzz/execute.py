"""Runs the linter with limits, and measures it."""

import dataclasses
import os
import resource
import subprocess
import tempfile
import threading
import time

# So much address space stops a run that would take the whole machine; the limit that counts is on the memory that is really used.
ADDRESS_SPACE = 16 << 30


@dataclasses.dataclass
class Run:
    """What came of it."""

    command: list
    code: int
    stdout: bytes
    stderr: bytes
    # CPU time, of all threads, which does not depend on what else the machine does.
    seconds: float
    # The run was ended from outside, as it did not end by itself.
    hung: bool
    # The most memory that it had at once, in MiB; 0 if that is less than what this process has had.
    memory: float


def run(command, folder, seconds):
    """Runs the command in the folder. It is ended after so many seconds of CPU time, or after three times as many and a minute besides by the clock."""

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 2, int(seconds) + 4))
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    environment = {**os.environ, "NO_COLOR": "1", "RUST_BACKTRACE": "0"}
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, preexec_fn=limits, env=environment
        )
        deadline = threading.Timer(3 * seconds + 60, process.kill)
        deadline.start()
        begun = time.monotonic()
        _, status, used = os.wait4(process.pid, 0)
        hung = time.monotonic() - begun >= 3 * seconds + 60
        deadline.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        stderr.seek(0)
        # Linux counts what this process had at once as the child's, too: less than that says nothing about the child.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return Run(
            command=command,
            code=process.returncode,
            stdout=stdout.read(),
            stderr=stderr.read(),
            seconds=used.ru_utime + used.ru_stime,
            hung=hung,
            memory=used.ru_maxrss / 1024 if used.ru_maxrss > own else 0,
        )
