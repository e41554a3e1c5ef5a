"""What programs define: functions and modules with random bodies, and helpers of well-known shapes."""

from dataclasses import dataclass, field

from scope import BEST, CPU, WORLDS, Var, everywhere

ARGUMENT = everywhere("P")


@dataclass
class FunctionInfo:
    """What a function takes (kinds, `dev`, `dev=` with a default) and gives."""

    takes: list
    result: object


@dataclass
class ModuleInfo:
    """The same of a module, and the parameters by which its device is known."""

    name: str
    takes: list
    result: str
    parameters: list = field(default_factory=list)
    # The attributes that a class derived from it finds.
    more_attributes: list = field(default_factory=list)


# PyTorch's own: the expression that makes one, and what it is.
MODULES = [
    ("nn.Linear(4, 4)", ModuleInfo("Linear", ["vec"], "vec", ["weight", "bias"])),
    ("nn.Linear(4, 4, bias=False)", ModuleInfo("Linear", ["mat"], "mat", ["weight"])),
    ("nn.LayerNorm(4)", ModuleInfo("LayerNorm", ["vec"], "vec", ["weight", "bias"])),
    ("nn.Embedding(4, 4)", ModuleInfo("Embedding", ["idx"], "mat", ["weight"])),
    ("nn.Sequential(nn.Linear(4, 4), nn.ReLU())", ModuleInfo("Sequential", ["vec"], "vec")),
    ("nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))", ModuleInfo("Sequential", ["mat"], "mat")),
    ("nn.MSELoss()", ModuleInfo("MSELoss", ["vec", "vec"], "scal")),
    ("nn.L1Loss()", ModuleInfo("L1Loss", ["mat", "mat"], "scal")),
    ("nn.CrossEntropyLoss()", ModuleInfo("CrossEntropyLoss", ["mat", "idx"], "scal")),
    ("nn.CrossEntropyLoss(weight={weight})", ModuleInfo("CrossEntropyLoss", ["mat", "idx"], "scal")),
    ("nn.BCEWithLogitsLoss(pos_weight={weight})", ModuleInfo("BCEWithLogitsLoss", ["vec", "vec"], "scal")),
    ("nn.Dropout(0.5)", ModuleInfo("Dropout", ["vec"], "vec")),
    ("nn.ReLU()", ModuleInfo("ReLU", ["mat"], "mat")),
]


class Definitions:
    """How `Program` writes definitions; mixed into it."""

    def isolated(self, variables, write):
        """Writes a body that sees just these variables, besides functions."""
        outside, default, inside = self.variables, self.default, self.inside
        self.variables = [v for v in outside if v.kind in ("function", "tuple function")] + variables
        self.default = CPU
        self.depth += 1
        write()
        self.depth -= 1
        self.variables, self.default, self.inside = outside, default, inside

    def parameters(self, kinds):
        """The parameters of these kinds: their text and their variables."""
        texts, variables = [], []
        for parameter in kinds:
            kind, _, default = parameter.partition("=")
            name = "device" if kind == "dev" else self.fresh(f"arg_{kind[0]}")
            texts.append(f"{name}={default}" if default else name)
            variables.append(Var(name, kind, dict(ARGUMENT), assignable=True))
        return texts, variables

    def takes(self):
        kinds = [self.kind() for _ in range(self.random.randint(1, 3))]
        if self.chance(0.3):
            kinds.append(self.choose(["dev", "dev", "dev=\"cpu\""]))
        return kinds

    def define_function(self):
        takes = self.takes()
        several = self.chance(0.2)
        result = [self.kind(), self.kind()] if several else self.kind()
        name = self.fresh("helper")
        info = FunctionInfo(takes, result)
        texts, variables = self.parameters(takes)
        self.emit(f"def {name}({', '.join(texts)}):")

        def body():
            self.inside = info
            for _ in range(self.random.randint(0, 3)):
                self.statement()
            if several:
                self.emit(f"return {self.expression(result[0], ARGUMENT)}, {self.expression(result[1], ARGUMENT)}")
            else:
                self.emit(f"return {self.expression(result, ARGUMENT)}")

        self.isolated(variables, body)
        self.calls.append(f"# call: {name} {' '.join(k.partition('=')[0] for k in takes)}")
        self.emit("")
        self.emit("")
        self.variables.append(Var(name, "tuple function" if several else "function", everywhere("any"), info))

    def define_module(self):
        name = self.fresh("Net")
        parents = [info.name for _, info in self.definitions if info.more_attributes]
        parent = self.choose(parents) if parents and self.chance(0.3) else None
        takes = [self.choose(["vec", "vec", "mat"])] + ([self.kind()] if self.chance(0.3) else [])
        result = self.kind() if self.chance(0.4) else takes[0]
        inherited = next((info.more_attributes for _, info in self.definitions if info.name == parent), [])
        info = ModuleInfo(name, takes, result)
        self.emit(f"class {name}({parent or 'nn.Module'}):")
        attributes = [Var(v.text, v.kind, dict(v.where), v.more, v.assignable) for v in inherited]
        self.depth += 1
        if self.chance(0.1):
            self.emit("shift = torch.ones(4)")
            self.emit("")
            attributes.append(Var("self.shift", "vec", CPU, assignable=False))
        self.emit("def __init__(self):")
        self.depth += 1
        self.emit("super().__init__()")
        for _ in range(self.random.randint(1, 4)):
            attributes += self.attribute()
        self.depth -= 1
        self.emit("")
        methods = []
        if self.chance(0.25):
            methods.append(self.method(attributes))
            step = methods[0]
            self.calls.append(f"# call: {name}.{step.text[5:]} {step.more.takes[0]}")
        if self.chance(0.15) and any(v.text == "self.scale" for v in attributes):
            self.emit("@property")
            self.emit("def device(self):")
            self.emit("    return self.scale.device")
            self.emit("")
            attributes.append(Var("self.device", "dev", ARGUMENT, assignable=False))
        texts, variables = self.parameters(takes)
        self.emit(f"def forward(self, {', '.join(texts)}):")

        def body():
            self.inside = info
            for _ in range(self.random.randint(0, 3)):
                self.statement()
            self.emit(f"return {self.expression(result, ARGUMENT)}")

        copies = [Var(v.text, v.kind, dict(v.where), v.more, v.assignable) for v in attributes]
        self.isolated(copies + variables + methods, body)
        self.depth -= 1
        self.calls.append(f"# call: {name} {' '.join(takes)}")
        self.emit("")
        self.emit("")
        info.parameters = ["scale"] if any(v.text == "self.scale" for v in attributes) else []
        info.more_attributes = attributes
        self.definitions.append((f"{name}()", info))

    def attribute(self):
        """A line of a constructor, and what `forward` finds there."""
        kind = self.choose(["vec", "vec", "mat", "idx", "mask"])
        value = self.make(kind, CPU)
        if "(" not in value:
            value = f"torch.ones(4)" if kind == "vec" else value
        where = dict(ARGUMENT)
        way = self.choose(["parameter", "buffer", "buffer", "plain", "plain", "module", "module", "list", "plain list"])
        if way == "parameter":
            name = "scale" if not self.chance(0.4) else self.fresh("gain")
            self.emit(f"self.{name} = nn.Parameter(torch.ones(4))")
            return [Var(f"self.{name}", "vec", where, assignable=False)]
        if way == "buffer":
            name = self.fresh("buffer")
            self.emit(f"self.register_buffer(\"{name}\", {value}{self.choose(['', ', persistent=False'])})")
            return [Var(f"self.{name}", kind, where, assignable=False)]
        if way == "plain":
            # Now and then the author takes it for a buffer.
            name = self.fresh("plain")
            self.emit(f"self.{name} = {value}")
            return [Var(f"self.{name}", kind, where if self.chance(self.mistakes * 3) else dict(CPU))]
        constructor, info = self.choose([m for m in [*MODULES, *self.definitions] if "{" not in m[0]])
        name = self.fresh("layer")
        if way == "module":
            self.emit(f"self.{name} = {constructor}")
            return [Var(f"self.{name}", "module", where, info, assignable=False)]
        name = self.fresh("layers")
        if way == "list" or not self.mistake():
            self.emit(f"self.{name} = nn.ModuleList([{constructor} for _ in range(2)])")
        else:
            self.emit(f"self.{name} = [{constructor}, {constructor}]")
        return [Var(f"self.{name}[{i}]", "module", where, info, assignable=False) for i in range(2)]

    def method(self, attributes):
        name = self.fresh("step")
        takes, result = [self.kind()], self.choose(["vec", "mat"])
        texts, variables = self.parameters(takes)
        info = FunctionInfo(takes, result)
        self.emit(f"def {name}(self, {', '.join(texts)}):")

        def body():
            self.inside = info
            self.emit(f"return {self.expression(result, ARGUMENT)}")

        self.isolated([Var(v.text, v.kind, dict(v.where), v.more, v.assignable) for v in attributes] + variables, body)
        self.emit("")
        return Var(f"self.{name}", "function", everywhere("any"), info)

    # Helpers of well-known shapes: lines, and how to call them.

    def define_helper(self):
        lines, call = self.choose(HELPERS)
        name = self.fresh("aid")
        for line in lines:
            self.emit(line.replace("NAME", name))
        self.emit("")
        self.emit("")
        self.variables.append(Var(name, "template", everywhere("any"), lambda program: call(program, name)))


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
