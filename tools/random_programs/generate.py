"""Random programs: what they look like from above."""

import random

from control import Control
from definitions import Definitions
from expressions import Expressions
from scope import BEST, CPU, CUDA, WORLDS, Program
from statements import Statements

HEADER = """\
import argparse
import copy
import itertools
import os
import sys
from collections import defaultdict, deque, namedtuple
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from functools import cached_property, lru_cache, partial, reduce, singledispatch, wraps
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_map

Batch = namedtuple("Batch", ["x", "y"])


@dataclass
class Sample:
    x: torch.Tensor
    y: torch.Tensor


"""

FLAGS = ("fast", "verbose", "half", "cuda", "gpu", "resume")


class Writer(Definitions, Statements, Control, Expressions, Program):
    """A program that writes itself."""

    def whole(self):
        """Its text."""
        for _ in range(self.random.choice((0, 1, 1, 2, 2, 3))):
            self.choose([self.define_function, self.define_helper, self.define_helper, self.define_module, self.define_module])()
        main = self.chance(0.4)
        self.lines.append("# main")
        self.base = 1 if main else 0
        flag = self.random.choice(("none", "none", "none", "argument", "constant", "parameter", "device"))
        if not main and flag == "parameter":
            flag = "none"
        name = self.choose(FLAGS)
        if main:
            self.emit(f"def main({name if flag == 'parameter' else ''}):")
            self.depth = 1
        run = self.begin(flag, name)
        self.start()
        for _ in range(self.random.randint(6, 18)):
            self.statement()
        if main:
            self.depth = 0
            given = self.value if flag == "parameter" else ""
            self.lines += ["", "", "if __name__ == \"__main__\":", f"    main({given})"]
        return run + "".join(c + "\n" for c in self.calls) + HEADER + "\n".join(self.lines) + "\n"

    def begin(self, flag, name):
        """Reads the program's flag; gives the comment that says how to set it."""
        self.value = self.chance(0.5)
        if flag in ("constant", "parameter"):
            self.active = {w for w in WORLDS if w[1] == self.value}
            if flag == "constant":
                name = name.upper()
                self.emit(f"{name} = {self.value}")
            self.declare(name, "bool", {w: int(w[1]) for w in WORLDS})
            return ""
        if flag == "argument":
            self.emit("parser = argparse.ArgumentParser()")
            self.emit(f"parser.add_argument(\"--{name}\", action=\"store_true\")")
            self.emit("args = parser.parse_args()")
            self.declare(f"args.{name}", "bool", {w: int(w[1]) for w in WORLDS})
            return f"# run: --{name}\n"
        if flag == "device":
            self.emit("parser = argparse.ArgumentParser()")
            self.emit("parser.add_argument(\"--device\", default=\"cpu\")")
            self.emit("args = parser.parse_args()")
            self.active = {w for w in WORLDS if w[0] and w[1]}
            self.declare("args.device", "dev", CUDA)
            # Whoever names a device means a GPU.
            return "# always: --device cuda\n"
        self.active = {w for w in WORLDS if not w[1]}
        return ""

    def start(self):
        """The first variables: a device, perhaps, and tensors."""
        where = CPU
        if self.chance(0.7):
            where = BEST
            text = self.choose(["torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")", "\"cuda\" if torch.cuda.is_available() else \"cpu\""])
            self.emit(f"device = {text}")
            self.counts["device"] = 1
            self.declare("device", "dev", BEST)
        for kind in ("vec", "mat", "vec", "idx"):
            place = where if self.chance(0.7) else CPU
            self.emit(f"{(name := self.fresh(kind[0]))} = {self.make(kind, place)}")
            self.declare(name, kind, place)


def program(seed, mistakes=0.12):
    """The program of this number."""
    return Writer(random.Random(seed), mistakes).whole()


if __name__ == "__main__":
    import sys

    print(program(int(sys.argv[1])), end="")
