"""How a program is run, by the simulation and on hardware alike: its command lines, its calls and the state it finds."""

import contextlib
import io
import re
import sys

import torch


@contextlib.contextmanager
def fresh(arguments):
    """The state of PyTorch and of Python as a program finds it."""
    argv, sys.argv = sys.argv, arguments
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        sys.argv = argv
        torch.set_default_device(None)
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)


SAMPLES = {
    "vec": lambda: torch.ones(4, device="cuda"),
    "mat": lambda: torch.ones(4, 4, device="cuda"),
    "scal": lambda: torch.ones((), device="cuda"),
    "idx": lambda: torch.zeros(4, dtype=torch.long, device="cuda"),
    "mask": lambda: torch.ones(4, dtype=torch.bool, device="cuda"),
    "dev": lambda: "cuda",
}


def call(scope, name, kinds):
    """Calls what a program defines as someone would who has a GPU."""
    name, _, method = name.partition(".")
    function = scope[name]
    if isinstance(function, type):
        function = function().to("cuda")
    if method:
        function = getattr(function, method)
    function(*(SAMPLES[kind]() for kind in kinds))


def runs(text):
    """The ways to run a program, each with the part of its text that is run.

    The plain one is without arguments, or with those of `# always: ARGUMENTS`; what fails only without those is true as well.
    Others are named by comments: `# run: ARGUMENTS`, and `# call: NAME KIND...` for something that is defined above the line `# main` and called with tensors on a GPU.
    """
    always = re.search("^# always: (.*)", text, re.MULTILINE)
    yield {"arguments": always[1].split() if always else [], "plain": True}, text
    if always:
        yield {"arguments": []}, text
    definitions = text[: text.index("\n# main\n") + 1] if "\n# main\n" in text else text
    for line in text.splitlines():
        if line.startswith("# run: "):
            yield {"arguments": line.split()[2:]}, text
        elif line.startswith("# call: "):
            yield {"call": (line.split()[2], line.split()[3:])}, definitions
