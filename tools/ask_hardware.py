#!/usr/bin/env python3
"""Asks PyTorch on the machine at hand, which has CUDA, what it says of the programs in data/hardware.txt.

    python3 tools/ask_hardware.py data/hardware.txt > answers.txt

The answers have the form of that file, header and all. A program that raises is run again with everything on the CPU: if that works, it was
refused for a device. The programs run one after the other in a forked process; one that leaves the GPU unusable ends it, and
the next goes on behind it.
"""

import contextlib
import json
import os
import pathlib
import re
import sys

from hardware_data import read

# What leaves the GPU unusable for the rest of the process.
LASTING = re.compile(r"CUDA error|device-side assert|CUBLAS_STATUS|CUDNN_STATUS", re.IGNORECASE)


def where(value):
    """Where a result is, or its type where it is no tensor; of several, each place once."""
    import torch

    if isinstance(value, torch.Tensor):
        return str(value.device)
    if isinstance(value, (list, tuple)) and any(isinstance(v, (torch.Tensor, list, tuple)) for v in value):
        return "+".join(dict.fromkeys(filter(None, map(where, value))))
    return "" if value is None else type(value).__name__


def run(program):
    """The place of a program's result; raises what it raises."""
    import torch

    scope = {"torch": torch, "__name__": "check"}
    try:
        # What they print is no answer.
        with contextlib.redirect_stdout(None):
            exec(compile(program, "<check>", "exec"), scope)
        torch.cuda.synchronize()
        return where(scope.get("result"))
    finally:
        torch.set_default_device(None)


def on_cpu(program):
    """The program with everything in main memory."""
    return re.sub(r"(['\"])cuda(:\d)?\1", r"\1cpu\1", program).replace(".cuda()", ".cpu()")


def ask(program):
    """The verdict on a program, the place of its result, and whether the GPU is usable afterwards."""
    try:
        return "accepted", run(program), True
    except BaseException as error:
        usable = not LASTING.search(str(error))
    try:
        run(on_cpu(program))
    except BaseException:
        return "fails", "", usable
    return "refused", "", usable


def answers(checks):
    """The verdicts on all programs, in order."""
    found = []
    while len(found) < len(checks):
        reading, writing = os.pipe()
        if not (child := os.fork()):
            for check in checks[len(found) :]:
                answer = ask(check.program)
                os.write(writing, (json.dumps(answer) + "\n").encode())
                if not answer[2]:
                    break
            os._exit(0)
        os.close(writing)
        before = len(found)
        with os.fdopen(reading) as pipe:
            found += map(json.loads, pipe)
        os.waitpid(child, 0)
        if len(found) == before:
            found.append(("fails", "", False))
    return found


def main():
    path = pathlib.Path(sys.argv[1])
    checks = read(path)
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        print(line)
    print(flush=True)
    for check, (verdict, place, _) in zip(checks, answers(checks)):
        print(check.name, verdict, *([place] if place else []))
        print(*(f"    {line}" for line in check.program.splitlines()), sep="\n")


if __name__ == "__main__":
    main()
