"""Helpers of well-known shapes: the lines that define one, and how to call it."""

from scope import BEST, CPU, WORLDS


def moving(text):
    """A helper that is given a tensor and a device, and gives the tensor there."""

    def call(program, name):
        v, where = program.some(), program.place()
        device = v and program.device(where)
        if not device:
            return False
        program.emit(f"{(new := program.fresh('there'))} = " + text.format(name=name, x=v.text, device=device))
        program.declare(new, v.kind, where)
        return True

    return call


def choosing(text, kind, where):
    """A helper that gives something of this kind, there."""

    def call(program, name):
        program.emit(f"{(new := program.fresh('chosen'))} = " + text.format(name=name))
        program.declare(new, kind, where)
        return True

    return call


def folding(text, kind, count):
    """A helper that puts several tensors together where they are."""

    def call(program, name):
        where = program.place()
        given = [program.operand("vec", where) for _ in range(count)]
        program.emit(f"{(new := program.fresh('folded'))} = " + text.format(*given, name=name))
        program.declare(new, kind, where)
        return True

    return call


def making(text, kind):
    """A helper that makes a tensor on a device that it is given."""

    def call(program, name):
        where = program.place()
        device = program.device(where)
        if not device:
            return False
        program.emit(f"{(new := program.fresh('made'))} = " + text.format(name=name, device=device))
        program.declare(new, kind, where)
        return True

    return call


def placing(text):
    """A helper that moves a module in place."""

    def call(program, name):
        v, where = program.some("module"), program.place()
        device = v and program.device(where)
        if not device:
            return False
        program.emit(text.format(name=name, module=v.text, device=device))
        program.rebind(v, where)
        return True

    return call


def setting(text, variable):
    """A helper that changes a global variable, a device."""

    def call(program, name):
        where = program.place()
        device = program.device(where)
        if not device or program.loops or program.depth > max(program.base, 0):
            return False
        program.emit(text.format(name=name, device=device))
        program.declare(variable.format(name=name), "dev", where, assignable=False)
        return True

    return call


def collecting(steps):
    """An object that puts tensors together, call by call."""

    def call(program, name):
        where = program.place()
        new = program.fresh("meter")
        program.emit(f"{new} = {name}()")
        for _ in range(steps):
            program.emit(f"{new}.add({program.operand('vec', where)})")
        program.declare(f"{new}.total", "vec", where)
        return True

    return call


def holder(call_text, attribute, assignable=True):
    """A class that keeps a tensor on a device that it is given."""

    def call(program, name):
        where = program.place()
        device = program.device(where)
        if not device:
            return False
        program.emit(f"{(new := program.fresh('keeper'))} = " + call_text.format(name=name, device=device))
        program.declare(f"{new}.{attribute}", "vec", where, assignable=assignable)
        return True

    return call


SECOND = {w: "cuda:1" if w[0] > 1 else "cpu" for w in WORLDS}

HELPERS = [
    (["def NAME(x, device):", "    return x.to(device)"], moving("{name}({x}, {device})")),
    (["def NAME(batch, device):", "    if isinstance(batch, (list, tuple)):", "        return [NAME(b, device) for b in batch]", "    return batch.to(device)"],
     moving("{name}([{x}, torch.zeros(4)], {device})[0]")),
    (["def NAME(batch, device):", "    return {k: v.to(device) for k, v in batch.items()}"], moving("{name}({{\"x\": {x}}}, {device})[\"x\"]")),
    (["def NAME(*tensors, device=\"cpu\"):", "    return tuple(t.to(device) for t in tensors)"], moving("{name}({x}, torch.ones(4), device={device})[0]")),
    (["def NAME(x, **options):", "    return x.to(**options)"], moving("{name}({x}, device={device})")),
    (["def NAME(x, device=None):", "    if device is None:", "        device = x.device", "    return x.to(device)"], moving("{name}({x}, device={device})")),
    (["NAME = lambda x, device: x.to(device)"], moving("{name}({x}, {device})")),
    (["def NAME(device):", "    def move(x):", "        return x.to(device)", "", "    return move"], moving("{name}({device})({x})")),
    (["class NAME:", "    def __init__(self, device):", "        self.device = device", "", "    def __call__(self, x):", "        return x.to(self.device)"],
     moving("{name}({device})({x})")),
    (["class NAME:", "    def __init__(self, device):", "        self.device = torch.device(device)", "", "    def put(self, x):", "        return x.to(self.device)"],
     moving("{name}({device}).put({x})")),
    (["class NAME:", "    @staticmethod", "    def move(x, device):", "        return x.to(device)"], moving("{name}.move({x}, {device})")),
    (["def NAME():", "    if torch.cuda.is_available():", "        return torch.device(\"cuda\")", "    return torch.device(\"cpu\")"], choosing("{name}()", "dev", BEST)),
    (["def NAME():", "    try:", "        torch.cuda.current_device()", "        return \"cuda\"", "    except RuntimeError:", "        return \"cpu\""],
     choosing("{name}()", "dev", BEST)),
    (["def NAME(index=0):", "    if torch.cuda.device_count() > index:", "        return f\"cuda:{index}\"", "    return \"cpu\""], choosing("{name}()", "dev", BEST)),
    (["def NAME(index=0):", "    if torch.cuda.device_count() > index:", "        return f\"cuda:{index}\"", "    return \"cpu\""], choosing("{name}(1)", "dev", SECOND)),
    (["def NAME(use_cuda=True):", "    return torch.device(\"cuda\" if use_cuda and torch.cuda.is_available() else \"cpu\")"], choosing("{name}()", "dev", BEST)),
    (["def NAME(use_cuda=True):", "    return torch.device(\"cuda\" if use_cuda and torch.cuda.is_available() else \"cpu\")"], choosing("{name}(use_cuda=False)", "dev", CPU)),
    (["def NAME(x, gpu=False):", "    if gpu and torch.cuda.is_available():", "        x = x.cuda()", "    return x"], choosing("{name}(torch.zeros(4), gpu=True)", "vec", BEST)),
    (["def NAME(x, gpu=False):", "    if gpu and torch.cuda.is_available():", "        x = x.cuda()", "    return x"], choosing("{name}(torch.zeros(4))", "vec", CPU)),
    (["NAME = partial(torch.zeros, 4, device=\"cuda\" if torch.cuda.is_available() else \"cpu\")"], choosing("{name}()", "vec", BEST)),
    (["def NAME(*tensors):", "    total = tensors[0]", "    for t in tensors[1:]:", "        total = total + t", "    return total"], folding("{name}({}, {}, {})", "vec", 3)),
    (["def NAME(x, n):", "    if n == 0:", "        return torch.ones_like(x)", "    return x * NAME(x, n - 1)"], folding("{name}({}, 2)", "vec", 1)),
    (["def NAME(x, y):", "    return {\"sum\": x + y, \"product\": x * y}"], folding("{name}({}, {})[\"sum\"]", "vec", 2)),
    (["def NAME(x, y=None):", "    if y is None:", "        y = torch.zeros_like(x)", "    return torch.stack([x, y])[0]"], folding("{name}({})", "vec", 1)),
    (["def NAME(first, second):", "    return [a + b for a, b in zip(first, second)]"], folding("{name}([{}], [{}])[0]", "vec", 2)),
    (["def NAME(function, x):", "    return function(x)"], folding("{name}(torch.relu, {})", "vec", 1)),
    (["def NAME(function, x):", "    return function(x)"], folding("{name}(lambda t: t + {}, {})", "vec", 2)),
    (["def NAME(n, device=\"cpu\"):", "    return torch.zeros(n, device=device)"], making("{name}(4, {device})", "vec")),
    (["def NAME(n, device=\"cpu\"):", "    return torch.zeros(n, device=device)"], choosing("{name}(4)", "vec", CPU)),
    (["def NAME(n, device=None):", "    device = device or (\"cuda\" if torch.cuda.is_available() else \"cpu\")", "    return torch.ones(n, device=device)"],
     choosing("{name}(4)", "vec", BEST)),
    (["def NAME(**options):", "    return torch.randn(4, **options)"], making("{name}(device={device})", "vec")),
    (["def NAME(device):", "    yield torch.zeros(4, device=device)", "    yield torch.ones(4, device=device)"], making("list({name}({device}))[1]", "vec")),
    (["def NAME(module, device):", "    module.to(device)"], placing("{name}({module}, {device})")),
    (["def NAME(module, device):", "    module.eval()", "    return module.to(device)"], placing("{module} = {name}({module}, {device})")),
    (["NAME_device = \"cpu\"", "", "", "def NAME(device):", "    global NAME_device", "    NAME_device = device"], setting("{name}({device})", "{name}_device")),
    (["NAME = {\"device\": \"cpu\"}"], setting("{name}[\"device\"] = {device}", "{name}[\"device\"]")),
    (["class NAME:", "    def __init__(self):", "        self.total = None", "", "    def add(self, x):",
      "        self.total = x if self.total is None else self.total + x"], collecting(2)),
    (["class NAME:", "    def __init__(self):", "        self.total = 0", "", "    def add(self, x):", "        self.total = self.total + x"], collecting(3)),
    (["class NAME:", "    def __init__(self, device):", "        self.state = torch.zeros(4, device=device)"], holder("{name}({device})", "state")),
    (["class NAME:", "    def __init__(self):", "        self.state = torch.zeros(4)", "", "    def to(self, device):", "        self.state = self.state.to(device)", "        return self"],
     holder("{name}().to({device})", "state")),
    (["@dataclass", "class NAME:", "    state: torch.Tensor", "    name: str = \"state\""], holder("{name}(torch.zeros(4, device={device}))", "state")),
    (["class NAME:", "    def __init__(self, device=\"cpu\"):", "        self.device = device", "", "    @property", "    def state(self):",
      "        return torch.ones(4, device=self.device)"], holder("{name}({device})", "state", assignable=False)),
]  # fmt: skip
