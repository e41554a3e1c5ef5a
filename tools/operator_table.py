#!/usr/bin/env python3
"""Writes data/operators.txt from an ops.json (PyTorch's own word on devices, by experiment).

    python3 tools/operator_table.py path/to/ops.json data/hardware.txt > data/operators.txt

Only the standard library. It encodes what was found and decides nothing: what a GPU has said (data/hardware.txt)
overrules what was simulated, argument by argument; corrections and additions, each with its reason, live in
data/operators-written.txt, which the program reads after this table.
"""

import json
import re
import sys

import hardware_data

HEADER = """\
# PyTorch's public callables and what they ask of devices. Generated; do not edit.
# Made from torch {torch} by: python3 tools/operator_table.py ops.json data/hardware.txt > data/operators.txt
# What was simulated says how an operator was meant; what an H100 has said (hardware.txt) overrules it.
# Corrections and additions, with reasons: operators-written.txt (same format, read after this file).
# The simulation's own answers (ops.json) are not kept here: without them, what changes goes there as well.
#
# NAME KIND RESULT FLAGS [STATE:ctor,…] [fails=construct] [value=CC] ARGUMENT…
#
# KIND      factory like new transfer same mixed unary host cpu_only indexing attribute module
#           distribution other
# RESULT    follows   the tensor arguments; with none of them: as `device`
#           receiver  the first tensor argument (a method's self); device= overrides where accepted
#           device    device=, else the default device
#           data      device=, else a default device that is set, else the device of the tensor given as data
#           each      each element of the result follows its own argument
#           other     the second tensor argument
#           to        what the arguments of .to() say, else the receiver
#           type      the receiver, unless a torch.cuda type is named
#           params    the parameters of the distribution
#           cpu, cuda, xpu, hpu, npu, mlu, musa
#           host      no tensor        torch-device  a torch.device        -  not known
# FLAGS     letters, or `-`: d honours the default device, D device=, g generator=, p pin_memory=,
#           t dtype=, o out= (not known whether it may be elsewhere), O out= (refused elsewhere),
#           f force= lifts the demand for a CPU receiver, k check_device=False that for one device
# ARGUMENT  NAME@POSITION[*|+]:CCC. `*` a sequence of tensors (or one), `+` this and all later positional
#           arguments; position `-` keyword only; a method's receiver is position 0. The codes:
#           1. shares a device with the other `!` arguments:
#              ! must, ~ need not, ? not known, c must be on the CPU whatever the others are
#           2. may be on the CPU when the others are on CUDA:
#              n no, y yes, z only zero-dimensional, a only where all of them are zero-dimensional (they are
#              broadcast first), m not unless perhaps zero-dimensional, ? not known
#           3. may be on CUDA when the others are on the CPU: the same letters
# A module's ARGUMENTs are those of forward(), against each other and against the module itself. STATE: parameters or
# buffers: yes, no, sometimes, unknown; then the constructor's parameters in order, tensors marked `!`, switches of
# the state marked `?` (with STATE yes: False for all of them leaves none; else: one that is True makes some).
# A distribution's `value=CC`: log_prob's argument on the CPU with CUDA parameters, and the reverse; a mismatch
# between parameters fails when sampling, or with `fails=construct` at once.
"""

KINDS = {
    "view_or_unary": "unary",
    "same_device": "same",
    "factory": "factory",
    "factory_like": "like",
    "new_*": "new",
    "mixed_ok": "mixed",
    "other": "other",
    "to_host": "host",
    "cpu_only": "cpu_only",
    "indexing": "indexing",
    "attribute": "attribute",
    "transfer": "transfer",
    "module": "module",
}
IN_PLACE = re.compile(r"(?<!_)_$|^__i(?!nt__|nvert__|ndex__|ter__)\w+__$")
CPU_OK = {"no": "n", "yes": "y", "zero_dim": "z", "zero_dim?": "m", "zero_dim_depends": "m"}


def verdict(entry, key):
    found = entry.get(key)
    return found["verdict"] if found else None


def codes(op, arg, index):
    """The three letters of one argument."""
    several = len(op["args"]) > 1 or arg["list"]
    share = arg["must_share_device"]
    if share is None and op["kind"] == "same_device" and several:
        share = True  # kind says so; the argument itself was not probed
    cpu = CPU_OK.get(arg.get("may_be_cpu"), "?")
    if cpu == "?" and share:
        last = op["name"].rsplit(".", 1)[-1]
        cpu = "n" if index == 0 and IN_PLACE.search(last) else "m"
    if share:
        cuda = "n"
    else:
        cuda = {"accepted": "y", "rejected": "n", "depends": "?"}.get(
            verdict(arg, "cuda_when_others_cpu"), cpu
        )
        if cuda == "n" and verdict(arg, "zero_dim_cuda_when_others_cpu") == "accepted":
            cuda = "z"
    return {True: "!", False: "~", None: "?"}[share] + cpu + cuda


def arguments(op):
    """The tensor arguments, the probe's `arg1`, `arg2`, … folded into the variadic one before them."""
    out = []
    args = [a for a in op["args"] if a["name"] != "out"]
    variadic = [a for a in args if re.fullmatch(r"arg\d+", a["name"])]
    named = [a for a in args if a not in variadic]
    for index, a in enumerate(named):
        mark = "+" if variadic and index == len(named) - 1 else "*" if a["list"] else ""
        at = "-" if a["position"] is None else a["position"]
        out.append(f"{a['name']}@{at}{mark}:{codes(op, a, index)}")
    if variadic and not named:
        first = 1 if op["name"] == "torch.einsum" else 0
        out.append(f"tensors@{first}+:{codes(op, variadic[0], 0)}")
    if not out and op["kind"] == "view_or_unary":
        out.append("input@0:???")
    return out


def result(op):
    device = op["result"].get("device")
    mixed = op["result"].get("when_mixed")
    if device is None:
        return {"cpu_only": "-", "attribute": "-"}.get(op["kind"], "-")
    if device == "follows the arguments":
        if mixed == "device of tensors" or op["name"].startswith("torch.atleast_"):
            return "each"
        return "receiver" if mixed else "follows"
    if device == "device of the input":
        return "follows"
    if device.startswith("device= argument"):
        return "device"
    if device.startswith("device argument (or other's"):
        return "to"
    if device.startswith("same as self, unless"):
        return "type"
    if device.startswith("same as self"):
        return "receiver"
    if device == "no tensor: device":
        return "torch-device"
    if device.startswith(("no tensor", "not a tensor")):
        return "host"
    return {
        "device of the parameters": "params",
        "device of other": "other",
        "cpu": "cpu",
        "cuda": "cuda",
    }.get(device, "-")


def compares_out(op):
    """Does it have both `device=` and `out=`? Factories compare the two as they read their arguments
    (torch/csrc/utils/out_types.cpp, check_out_type_matches; a GPU says so of `arange`)."""
    return op["kind"] == "factory" and "device" in op["accepts"]


def flags(op):
    letters = "d" if op["result"].get("honours_default_device") else ""
    accepts = op["accepts"]
    for name, letter in (("device", "D"), ("generator", "g"), ("pin_memory", "p"), ("dtype", "t")):
        letters += letter if name in accepts else ""
    if "out" in accepts:
        both = (op.get("out") or {}).values()
        letters += "O" if compares_out(op) or any(v and v["verdict"] == "rejected" for v in both) else "o"
    return letters or "-"


def module(op):
    constructor = op["constructor"]
    tensors = constructor.get("tensor_parameters", [])
    names = ",".join(p + ("!" if p in tensors else "") for p in constructor["parameters"])
    state = {True: "yes", False: "no", None: "unknown"}.get(
        op.get("has_parameters_or_buffers"), "sometimes"
    )
    out = [f"{state}:{names}"]
    for f in op["forward"]:
        seen = [verdict(f, k) for k in ("cpu_when_rest_cuda", "cuda_when_rest_cpu")]
        if f.get("must_be_on_module_device"):
            code = "!nn"
        elif "depends" in seen:
            code = "!mm"  # refused for some samples: those that are not zero-dimensional
        else:
            code = "???"
        out.append(f"{f['name']}@{f['position']}:{code}")
    return out


def distribution(op):
    probe = op["distribution_probe"]
    letter = {"accept": "y", "reject": "n", "fake-reject": "n"}
    value = "".join(
        letter.get(probe.get(key, {}).get("verdict"), "?")
        for key in ("log_prob(cpu value), parameters on cuda", "log_prob(cuda value), parameters on cpu")
    )
    out = [f"value={value}"]
    if any("reject" in v["verdict"] for k, v in probe.items() if k.endswith("construct")):
        out.insert(0, "fails=construct")
    for a in op["args"]:
        # `False` only says that no refusal was seen, and most of those could not be built by the probe.
        share = "!mn" if a["must_share_device"] else "???"
        out.append(f"{a['name']}@{a['position']}:{share}")
    return out


def line(op, hardware):
    kind = KINDS[op["kind"]]
    result_rule, letters = result(op), flags(op)
    if op.get("class") == "distribution":
        kind, rest = "distribution", distribution(op)
    elif kind == "module":
        rest = module(op)
    else:
        rest = [hardware.argument(op, a) for a in arguments(op)]
        if rest != arguments(op) and all(a.endswith(":~yy") for a in rest):
            # Anything may be anywhere: elements are copied into a copy of the first.
            kind, result_rule = "mixed", "receiver"
        elif any(a.endswith("zz") for a in rest) and result_rule == "follows":
            # A number that is read from wherever it is has no say in where the result is.
            result_rule = "receiver"
        if hardware.refuses_out(op):
            letters = letters.replace("o", "O")
    return " ".join([op["name"], kind, result_rule, letters, *rest])


class Hardware:
    """What a GPU has said, against what was simulated.

    The function, the method and the in-place method of an operator (`aliases`) run the same kernel. What was asked of one
    of them holds for the others as far as the simulation had the argument alike for both."""

    def __init__(self, ops, checks):
        self.facts = hardware_data.Facts(checks)
        names = {op["name"] for op in ops}
        self.codes = {
            (op["name"], a.split("@")[1].split(":")[0].strip("*+")): a.rsplit(":", 1)[1]
            for op in ops
            if op["kind"] != "module" and op.get("class") != "distribution"
            for a in arguments(op)
        }
        self.kin = {op["name"]: {op["name"]} for op in ops}
        for op in ops:
            for other in names.intersection(op["aliases"]):
                self.kin[op["name"]].add(other)
                self.kin[other].add(op["name"])

    def asked(self, op, at):
        """The operators whose answers about the argument at this position hold for `op`."""
        if at == "0" and IN_PLACE.search(op["name"].rsplit(".", 1)[-1]):
            return {op["name"]}
        mine = self.codes[op["name"], at]
        return {op["name"]} | {k for k in self.kin[op["name"]] if self.codes.get((k, at)) == mine}

    def argument(self, op, text):
        """One argument of the table, with what the GPU says of it."""
        name, at, share, cpu, cuda = re.fullmatch(r"(\w+)@([^:]+):(.)(.)(.)", text).groups()
        position = at.strip("*+")
        places = [name] if position == "-" else [int(position), name]
        if "+" in at:
            places += range(int(position) + 1, int(position) + 4)
        operators = self.asked(op, position)
        on_cpu, on_cuda = (self.facts.of(operators, places, side) for side in ("cpu", "cuda"))
        if IN_PLACE.search(op["name"].rsplit(".", 1)[-1]) and position == "0":
            # What is written into stays where it is: if it was accepted, the others may be elsewhere.
            on_cpu = {}
        if share in "c?" or not on_cpu and not on_cuda:
            return text
        new = self.facts.letter(cpu, on_cpu)
        if on_cuda.get(self.facts.SIZED) and new == "y":
            share, cuda = "~", "y"
        elif on_cuda.get(self.facts.SINGLE):
            cuda = "z" if new != "y" else "y"
        return f"{name}@{at}:{share}{new}{cuda}"

    def refuses_out(self, op):
        """Has `out=` on another device been refused?"""
        return op["name"] in self.facts.out_refused


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        table = json.load(file)
    hardware = Hardware(table["ops"], hardware_data.read(sys.argv[2]))
    sys.stdout.write(HEADER.format(torch=table["torch"]))
    for text in sorted(line(op, hardware) for op in table["ops"]):
        print(text)


if __name__ == "__main__":
    main()
