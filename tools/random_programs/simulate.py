"""Runs programs with the real PyTorch on machines that are not there.

PyTorch's FakeTensorMode gives every tensor a device and applies PyTorch's own device checks without any hardware. What it
leaves out is added here: whether the machine has the device that is asked for, indices, conversion to NumPy, and the
operators that refuse zero-dimensional CPU tensors although FakeTensorMode is lenient with them. Where a GPU has been asked
(data/hardware.txt), its word counts and not the simulation's.

A program that fails is run again with that failure mended (the operands are brought together, the device is there
after all), to see what would fail next, until it gets to its end: a finding about a later line can be judged, too.

    simulate.py PROGRAM...      one line of JSON a program, machine and command line
"""

import json
import os
import pathlib
import re
import sys
import traceback
import warnings

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("OMP_NUM_THREADS", "1")
warnings.filterwarnings("ignore")

import logging  # noqa: E402

logging.disable(logging.ERROR)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch._subclasses.fake_tensor as fake_tensor  # noqa: E402
import torchgen  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402
from torch.utils._pytree import tree_leaves, tree_map  # noqa: E402

from execution import call, fresh, runs  # noqa: E402

TOOLS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOOLS))
from hardware_data import Facts, read  # noqa: E402

GPUS = (0, 1, 4)
# How many failures of one run are mended to see what comes after them.
REPAIRS = 40

MISMATCH = re.compile(
    r"FakeTensor Device Propagation|Mismatching aten|same device|at least two devices|different devices?|indices should be|expected device"
    r"|devices to match|expected tensor to have \S+ device|to be on (the )?cpu|should be on cpu|Expected a '\w+' device type for generator",
    re.IGNORECASE,
)
# Operators that PyTorch makes of others, and that refuse a zero-dimensional CPU tensor among CUDA ones.
STRICT = {"cat", "stack"}
# Operators whose operands may be anywhere.
CROSSING = {"copy", "_to_copy", "set", "index", "index_put", "_unsafe_index", "_index_put_impl", "_unsafe_index_put"}


class Machine:
    """The machine of the run in progress, and what failed on it."""

    def __init__(self):
        # How a mismatch is mended: operands go to the first one's device, or to the GPU.
        self.to_gpu = False
        self.start("", 0, frozenset())

    def start(self, path, gpus, mended):
        self.path = path
        self.gpus = gpus
        self.current = 0
        self.mended = mended
        self.count = 0
        self.raised = {}
        # Kinds and lines of all that was raised, even if the program caught it.
        self.seen = []

    def fault(self, kind, error):
        """Raises `error`, unless the run is one in which this failure is mended."""
        number = self.count
        self.count += 1
        if number not in self.mended:
            self.raised[id(error)] = (number, kind, error)
            self.seen.append((kind, self.lines()))
            raise error

    def lines(self):
        """The lines of the program that are being run."""
        frame, found = sys._getframe(1), []
        while frame is not None:
            if frame.f_code.co_filename == self.path:
                found.insert(0, frame.f_lineno)
            frame = frame.f_back
        return found

    def need(self, index=None):
        """Refuses a GPU that the machine lacks."""
        if self.gpus == 0:
            self.fault("cuda", RuntimeError("Found no NVIDIA driver on your system"))
        elif index is not None and index >= self.gpus:
            self.fault("ordinal", RuntimeError("CUDA error: invalid device ordinal"))

    def index(self, device):
        """The number of a GPU however it is spelled."""
        if device is None:
            return self.current
        if isinstance(device, int):
            return device
        device = torch.device(device)
        return self.current if device.index is None else device.index

    def check(self, device):
        """Refuses a device that the machine lacks."""
        if isinstance(device, int):
            self.need(device)
        elif isinstance(device, (str, torch.device)):
            device = torch.device(device)
            if device.type == "cuda":
                self.need(device.index)


MACHINE = Machine()


def tensors(*trees):
    return [leaf for tree in trees for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def exact_operators():
    """The operators whose CUDA kernels want all tensors on one device, zero-dimensional ones too; PyTorch's own list."""
    path = pathlib.Path(torchgen.__file__).parent / "packaged/ATen/native/native_functions.yaml"
    found = set()
    for block in path.read_text(encoding="utf-8").split("\n- func: ")[1:]:
        kernel = re.search(r"^  (structured|structured_delegate): |^    [\w, ]*\bCUDA\b", block, re.MULTILINE)
        if kernel and "device_check: NoCheck" not in block:
            found.add(block[: block.index("(")])
    return found


EXACT = exact_operators()


class Strict(TorchDispatchMode):
    """Refuses what CUDA's kernels refuse and FakeTensorMode lets pass."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func._schema.name.split("::")[1]
        base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        found = tensors(args, kwargs)
        devices = {t.device for t in found}
        if len(devices) > 1 and base not in CROSSING:
            written = tensors(
                [a for a, s in zip(args, func._schema.arguments) if s.alias_info is not None and s.alias_info.is_write]
            )
            if base in STRICT or func._schema.name[6:] + self.overload(func) in EXACT or any(t.device.type == "cpu" for t in written):
                raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices")
        return func(*args, **kwargs)

    @staticmethod
    def overload(func):
        name = func._schema.overload_name
        return f".{name}" if name else ""


class Hardware:
    """What a GPU has said of operators that were given tensors from both sides."""

    def __init__(self, path):
        self.facts = Facts(read(path))

    def says(self, name, args, kwargs):
        """True if such a call was accepted, False if it was refused, None if nobody has asked."""
        given = {(i if is_tensor(v) else (i, n)): t for i, v in [*enumerate(args), *kwargs.items()] for n, t in enumerate(tensors(v))}
        sides = {side: [p for p, t in given.items() if t.device.type == side] for side in ("cpu", "cuda")}
        if "out" in given or not sides["cpu"] or not sides["cuda"]:
            return None
        # A number is one by itself; of several others nobody knows which was refused.
        counts = [p for p in sides["cpu"] if not given[p].dim() or len(sides["cpu"]) == 1]
        said = [self.cell(name, place, given, "cpu") for place in counts]
        if False in said:
            return False
        read = [p for p in sides["cuda"] if len(sides["cuda"]) == 1 and any(given[q].dim() for q in sides["cpu"])]
        accepted = all(said) if len(counts) == len(sides["cpu"]) else False
        return True if accepted or any(self.cell(name, place, given, "cuda") for place in read) else None

    def cell(self, name, place, given, side):
        """What is known of this argument being there while the others are on the other side."""
        others = [t for t in given.values() if t.device.type != side]
        base = name[:-1] if name.endswith("_") and not name.endswith("__") else name
        base = re.sub("^(linalg|special)_", r"\1.", base)
        spelled = [f"torch.{where}{base}" for where in ("", "Tensor.", "nn.functional.", "special.")] + [f"torch.Tensor.{base}_"]
        if base != name and place == 0:
            # What is written into stays where it is.
            spelled = [f"torch.Tensor.{name}"]
        found = self.facts.of(spelled, [place[0] if isinstance(place, tuple) else place], side)
        if given[place].dim():
            return found.get(Facts.SIZED)
        both = found.get(Facts.ALL)
        if any(t.dim() for t in others):
            return found.get(Facts.SINGLE, False if both is False else None)
        return both


def is_tensor(value):
    return isinstance(value, torch.Tensor)


HARDWARE = Hardware(TOOLS.parent / "data/hardware.txt")


class Guard(torch.overrides.TorchFunctionMode):
    """Sees each call of PyTorch's before PyTorch does."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        MACHINE.check(kwargs.get("device"))
        if name == "cuda":
            index = MACHINE.index(args[1] if len(args) > 1 else kwargs.get("device"))
            MACHINE.need(index)
            return args[0].to(torch.device("cuda", index))
        if name == "to" and len(args) > 1:
            MACHINE.check(args[1])
        if name == "new_tensor" and args[0].device.type != "meta":
            # It would ask for the device of the storage, which is not where the tensor is taken to be.
            kwargs.setdefault("device", args[0].device)
        if name in ("index_put", "index_put_") and len(args) > 2:
            if not self.goes_into(args[0], args[2]):
                MACHINE.fault("mismatch", RuntimeError("Expected all tensors to be on the same device, but found at least two devices"))
            to_gpu = MACHINE.to_gpu and name == "index_put"
            there = next((t.device for t in (args[0], args[2]) if t.device.type != "cpu"), args[0].device) if to_gpu else args[0].device
            args = tree_map(lambda t: t.to(there) if isinstance(t, torch.Tensor) else t, args)
        if name in ("__getitem__", "__setitem__"):
            args = (args[0], self.key(args[0], args[1], reads=name == "__getitem__"), *args[2:])
        said = HARDWARE.says(name, args, kwargs)
        try:
            if said is False:
                raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices")
            return func(*args, **kwargs)
        except RuntimeError as error:
            if not MISMATCH.search(str(error)):
                raise
            if not said:
                MACHINE.fault("mismatch", RuntimeError(str(error)))
        found = tensors(args, kwargs)
        in_place = name.endswith("_") and not name.endswith("__")
        written = in_place or name in ("__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__")
        there = found[0].device
        if MACHINE.to_gpu and not written:
            there = next(t.device for t in found if t.device.type != "cpu")
        args, kwargs = tree_map(lambda t: t.to(there) if isinstance(t, torch.Tensor) else t, (args, kwargs))
        return func(*args, **kwargs)

    @staticmethod
    def goes_into(tensor, values):
        """Whether `tensor.index_put(indices, values)` has its values where they may be: a number may come from anywhere, and so may indices."""
        return values.device == tensor.device or values.dim() == 0

    @staticmethod
    def key(tensor, key, reads):
        """The index of `tensor[key]`, on a device where it may be: reading refuses one that is elsewhere, unless it is a number, writing
        brings it along (ATen/native/IndexingUtils.h, expandTensors)."""
        keys = key if isinstance(key, tuple) else (key,)
        if away := [k for k in keys if is_tensor(k) and k.device.type != "cpu" and k.device != tensor.device]:
            if reads and any(k.dim() for k in away):
                MACHINE.fault("mismatch", RuntimeError("indices should be either on cpu or on the same device"))
            key = tree_map(lambda k: k.to(tensor.device) if isinstance(k, torch.Tensor) else k, key)
        return key


def to_numpy(tensor, *_, **__):
    if tensor.device.type != "cpu":
        MACHINE.fault("numpy", TypeError(f"can't convert {tensor.device} device type tensor to numpy."))
    if tensor.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
    return np.zeros(tuple(tensor.shape), dtype=str(tensor.dtype).split(".")[1])


def apply(module, function, recurse=True):
    """`nn.Module._apply`, by which modules move: parameters keep their identity, buffers are replaced."""
    for child in module.children() if recurse else ():
        child._apply(function)
    with torch.no_grad():
        for name, old in module._parameters.items():
            if old is not None:
                new = function(old)
                if isinstance(old, FakeTensor) and new.dtype == old.dtype:
                    old.fake_device = new.device
                else:
                    module._parameters[name] = torch.nn.Parameter(new, old.requires_grad)
        for name, old in module._buffers.items():
            if old is not None:
                module._buffers[name] = function(old)
    return module


class OnDevice:
    """`torch.cuda.device(i)`."""

    def __init__(self, device):
        self.index = MACHINE.index(device)

    def __enter__(self):
        self.previous = MACHINE.current
        MACHINE.need(self.index)
        MACHINE.current = self.index

    def __exit__(self, *_):
        MACHINE.current = self.previous


class Properties:
    name, major, minor, total_memory, multi_processor_count = "Simulated GPU", 9, 0, 80 << 30, 132


def asking(result):
    """A function of `torch.cuda` that needs the GPU it is asked about."""

    def ask(device=None):
        MACHINE.need(MACHINE.index(device))
        return result

    return ask


def set_device(device):
    MACHINE.need(MACHINE.index(device))
    MACHINE.current = MACHINE.index(device)


def install():
    """Puts the simulated hardware in the place of the real one."""
    fake_tensor.init_gpu_context = lambda device: None
    FakeTensorMode.avoid_device_init = property(lambda self: True)
    torch.backends.cudnn.enabled = False
    torch.backends.cudnn.is_acceptable = lambda tensor: False
    cuda = torch.cuda
    cuda.is_available = lambda: MACHINE.gpus > 0
    cuda.device_count = lambda: MACHINE.gpus
    cuda.is_initialized = lambda: MACHINE.gpus > 0
    cuda.current_device = lambda: (MACHINE.need(), MACHINE.current)[1]
    cuda.set_device = set_device
    cuda.synchronize = asking(None)
    cuda.get_device_name = asking("Simulated GPU")
    cuda.get_device_properties = asking(Properties)
    cuda.get_device_capability = asking((9, 0))
    cuda.mem_get_info = asking((79 << 30, 80 << 30))
    cuda.empty_cache = lambda: None
    cuda.memory_allocated = cuda.max_memory_allocated = lambda device=None: 0
    cuda.manual_seed = cuda.manual_seed_all = lambda seed: None
    cuda.device = OnDevice
    tensor = torch.Tensor
    tensor.numpy = to_numpy
    tensor.__array__ = lambda self, dtype=None, **_: to_numpy(self)
    tensor.item = lambda self: 1.0 if self.dtype.is_floating_point else 1
    tensor.tolist = lambda self: np.ones(tuple(self.shape)).tolist()
    tensor.__bool__ = lambda self: True
    tensor.__float__ = lambda self: 1.0
    tensor.__int__ = tensor.__index__ = lambda self: 1
    tensor.__repr__ = lambda self: "tensor"
    tensor.__format__ = lambda self, spec: "tensor"
    tensor.backward = lambda self, *_, **__: None
    torch.nn.Module._apply = apply


def attempt(code, path, run, gpus, mended):
    """Runs a program once: None if it works, or the number, kind, lines and message of what failed."""
    MACHINE.start(path, gpus, mended)
    scope = {"__name__": "__main__", "__file__": path}
    try:
        with fresh([path, *run.get("arguments", [])]), FakeTensorMode(allow_non_fake_inputs=True), Strict(), Guard():
            exec(code, scope)
            if "call" in run:
                call(scope, *run["call"])
    except SystemExit as stop:
        if stop.code not in (None, 0):
            return (None, "exit", [], f"exit {stop.code}")
    except BaseException as error:
        lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == path]
        number, kind, _ = MACHINE.raised.get(id(error), (None, "other", error))
        text = str(error).strip().splitlines()
        return (number, kind, lines, f"{type(error).__name__}: {text[0][:160] if text else ''}")
    return None


def failures(code, path, run, gpus):
    """What fails, in order: the first as the program is, each further one with those before it mended; and what else
    is raised, when it is caught or when a mismatch is mended the other way."""
    found, others = in_order(code, path, run, gpus)
    if any(f["kind"] == "mismatch" for f in found):
        MACHINE.to_gpu = True
        more = in_order(code, path, run, gpus)
        others += [f for f in more[0] if f["kind"] not in ("other", "exit")] + more[1]
        MACHINE.to_gpu = False
    return found, others


def in_order(code, path, run, gpus):
    """The failures of runs that end at one each, and what the program itself caught."""
    mended, found = set(), []
    while len(found) <= REPAIRS:
        failed = attempt(code, path, run, gpus, mended)
        if failed is None:
            break
        number, kind, lines, message = failed
        found.append({"kind": kind, "lines": lines, "message": message})
        if number is None:
            break
        mended.add(number)
    if len(found) > REPAIRS:
        found.append({"kind": "other", "lines": [], "message": "more failures than are mended"})
    # What the program itself caught is no failure of its own, but a mismatch all the same.
    caught = [{"kind": kind, "lines": lines} for kind, lines in MACHINE.seen if kind not in ("cuda", "ordinal")]
    return found, caught


def simulate(path):
    """All runs of a program on all machines."""
    with open(path, encoding="utf-8") as file:
        source = file.read()
    for run, text in runs(source):
        code = compile(text, path, "exec")
        for gpus in GPUS[1:] if "call" in run else GPUS:
            found, caught = failures(code, path, run, gpus)
            yield {"path": path, **run, "gpus": gpus, "failures": found, "others": caught}


def main():
    install()
    arguments = sys.argv[1:]
    # Who asks for it is told which program comes next, in case PyTorch crashes in it.
    tell = "--tell" in arguments
    for path in [a for a in arguments if a != "--tell"] or (line.strip() for line in sys.stdin):
        if tell:
            print(json.dumps({"path": path}), flush=True)
        for outcome in simulate(path):
            print(json.dumps(outcome), flush=True)


if __name__ == "__main__":
    main()
