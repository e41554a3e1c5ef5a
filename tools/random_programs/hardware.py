#!/usr/bin/env python3
"""Runs programs with PyTorch on the machine at hand, with its GPUs and without, and compares them with the simulation.

    hardware.py PROGRAM... > OUTCOMES       one line of JSON a program, machine and command line
    hardware.py --compare RUNS OUTCOMES     where the simulation (runs.json) has another first failure

Without arguments the paths are read from the standard input. Needs a PyTorch with CUDA; with no GPU, only what happens
without one is found out. A program ends at its first failure here: nothing is mended.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import traceback

# One program must not take longer, in seconds, CUDA's start included.
PATIENCE = 40
ABSENT = re.compile(r"no NVIDIA driver|No CUDA GPUs are available|not compiled with CUDA|no CUDA-capable device", re.IGNORECASE)
ORDINAL = re.compile(r"invalid device ordinal|Invalid device id|device index out of range|device=\d+, num_gpus", re.IGNORECASE)
MEETING = re.compile(
    r"same device|at least two devices|different devices?|indices should be|expected device|devices to match|to have \S+ device"
    r"|to be on (the )?cpu|should be on cpu|on cpu, |must be on|Expected a '\w+' device type for generator|Expected object of device",
    re.IGNORECASE,
)
# What leaves the GPU unusable for the rest of the process.
LASTING = re.compile(r"CUDA error|device-side assert|CUBLAS_STATUS|CUDNN_STATUS", re.IGNORECASE)


def kind(error):
    """The kind of a failure, in the words of `simulate.py`."""
    text = str(error)
    if ABSENT.search(text):
        return "cuda"
    if ORDINAL.search(text):
        return "ordinal"
    if isinstance(error, TypeError) and "device type tensor to numpy" in text:
        return "numpy"
    return "mismatch" if MEETING.search(text) else "other"


def attempt(text, path, run):
    """The failure that ends a program, if there is one, and whether CUDA has to be started anew behind it."""
    import torch
    from execution import call, fresh

    scope = {"__name__": "__main__", "__file__": path}
    try:
        with fresh([path, *run.get("arguments", [])]):
            exec(compile(text, path, "exec"), scope)
            if "call" in run:
                call(scope, *run["call"])
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()
    except SystemExit as stop:
        if stop.code not in (None, 0):
            return {"kind": "exit", "lines": [], "message": f"exit {stop.code}"}, False
    except BaseException as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        text = str(error).strip().splitlines() or [""]
        failure = {"kind": kind(error), "lines": lines, "message": f"{type(error).__name__}: {text[0][:160]}"}
        return failure, bool(LASTING.search(str(error))) and failure["kind"] != "ordinal"
    return None, False


def outcomes(path, gpus):
    """All runs of a program on this machine."""
    from execution import runs

    source = pathlib.Path(path).read_text(encoding="utf-8")
    sys.path[0] = os.path.dirname(os.path.abspath(path))
    for run, text in runs(source):
        if "call" in run and not gpus:
            continue
        failure, broken = attempt(text, path, run)
        yield {"path": path, **run, "gpus": gpus, "failures": [failure] if failure else []}
        if broken:
            return


def from_the_first(paths, gpus, alone, ends):
    """In a forked process: the outcomes of the programs, until one breaks CUDA, or of the first one `alone`. Each is written behind its number."""
    modules = set(sys.modules)
    for number, path in enumerate(paths):
        signal.alarm(PATIENCE)
        found = list(outcomes(path, gpus))
        os.write(ends, (json.dumps([number, found]) + "\n").encode())
        if alone or any(LASTING.search(f["message"]) for run in found for f in run["failures"]):
            return
        for name in set(sys.modules) - modules:
            # The next program may have a file of the same name.
            if getattr(sys.modules[name], "__file__", None) and sys.path[0] in sys.modules[name].__file__:
                del sys.modules[name]


def tell(run):
    """Writes an outcome at once, as the workers share the output."""
    os.write(sys.stdout.fileno(), (json.dumps(run) + "\n").encode())


def work(paths, gpus, alone):
    """Runs programs one after the other, in processes that are replaced when one dies."""
    while paths:
        reading, writing = os.pipe()
        if not (child := os.fork()):
            os.close(reading)
            try:
                from_the_first(paths, gpus, alone, writing)
                os._exit(0)
            finally:
                os._exit(1)
        os.close(writing)
        done = 0
        with os.fdopen(reading) as pipe:
            for line in pipe:
                number, found = json.loads(line)
                done = number + 1
                for run in found:
                    tell(run)
        _, status = os.waitpid(child, 0)
        if code := os.waitstatus_to_exitcode(status):
            failure = {"kind": "other", "lines": [], "message": f"the process ended with {code}"}
            tell({"path": paths[done], "plain": True, "gpus": gpus, "failures": [failure]})
            done += 1
        paths = paths[done:]


def count():
    """How many GPUs PyTorch sees, asked in another process: here CUDA must not be started before the fork."""
    script = "import torch; print(torch.cuda.device_count())"
    return int(subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout)


def spread(paths, jobs, alone):
    """Starts the workers: each has some of the programs, on this machine with its GPUs or without."""
    workers = []
    for gpus in {0, count()}:
        hidden = {} if gpus else {"CUDA_VISIBLE_DEVICES": ""}
        for first in range(jobs):
            command = [sys.executable, __file__, "--work", str(gpus), *(["--alone"] if alone else []), *paths[first::jobs]]
            workers.append(subprocess.Popen(command, env={**os.environ, **hidden, "OMP_NUM_THREADS": "1"}))
    for worker in workers:
        worker.wait()


def compare(simulated, real):
    """Prints where the first failures differ, and how many do not."""
    key = lambda run: (os.path.basename(run["path"]), run["gpus"], json.dumps([run.get("arguments"), run.get("call")]))
    first = lambda run: next(((f["kind"], f["lines"][-1:]) for f in run["failures"]), None)
    expected = {key(run): run for runs in json.loads(pathlib.Path(simulated).read_text()).values() for run in runs}
    tally = collections.Counter()
    for line in pathlib.Path(real).read_text().splitlines():
        run = json.loads(line)
        other = expected.get(key(run))
        if other is None or any(first(r) and first(r)[0] in ("other", "exit") for r in (run, other)):
            tally["not comparable"] += 1
            continue
        agrees = first(run) == first(other)
        tally["agree" if agrees else "differ"] += 1
        tally["fail"] += bool(agrees and first(run))
        if not agrees:
            told = [next((f"{f['lines'][-1:]} {f['message']}" for f in r["failures"]), "runs") for r in (other, run)]
            print(f"{run['path']} with {run['gpus']} GPUs {run.get('call', '')}\n    simulated: {told[0]}\n    here:      {told[1]}")
    print(f"{tally['agree']} runs end alike ({tally['fail']} of them fail), {tally['differ']} differ, {tally['not comparable']} end for other reasons")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--jobs", type=int, default=max(1, len(os.sched_getaffinity(0)) // 2))
    parser.add_argument("--alone", action="store_true", help="each program in a process of its own: slower, and none sees what another has set")
    parser.add_argument("--compare", nargs=2, metavar=("RUNS", "OUTCOMES"))
    parser.add_argument("--work", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compare:
        compare(*options.compare)
    elif options.work is not None:
        import warnings

        import torch  # noqa: F401  before the forks, which share it

        warnings.filterwarnings("ignore")
        work(options.programs, options.work, options.alone)
    else:
        spread(options.programs or [line.strip() for line in sys.stdin], options.jobs, options.alone)


if __name__ == "__main__":
    main()
