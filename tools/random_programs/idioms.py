"""More helpers: records, generators, managers, properties, classes that build on others, and objects that keep something."""

from helpers import choosing, folding, holder, making, moving, placing
from scope import BEST, CPU


def entering(text):
    """A manager that is given a tensor and a device, and gives the tensor there."""

    def call(program, name):
        v, where = program.some(), program.place()
        device = v and program.device(where)
        if not device:
            return False
        new = program.fresh("there")
        program.emit(f"with {text.format(name=name, x=v.text, device=device)} as {new}:")
        program.emit(f"    print({new}.shape)")
        program.declare(new, v.kind, where)
        return True

    return call


def stepping(steps, text):
    """An object that is told of a device before it moves something."""

    def call(program, name):
        v, where = program.some(), program.place()
        device = v and program.device(where)
        if not device:
            return False
        new = program.fresh("object")
        for step in steps:
            program.emit(step.format(name=name, object=new, device=device))
        program.emit(f"{(there := program.fresh('there'))} = " + text.format(object=new, x=v.text))
        program.declare(there, v.kind, where)
        return True

    return call


def running(text):
    """An object that has a module, moves it, and moves what it is called with."""

    def call(program, name):
        modules = [v for v in program.visible("module") if v.assignable]
        where = program.place()
        device = modules and program.device(where)
        if not device:
            return False
        v = program.choose(modules)
        given = ", ".join(program.operand(kind, program.place()) for kind in v.more.takes)
        program.emit(f"{(new := program.fresh('ran'))} = " + text.format(name=name, module=v.text, device=device, given=given))
        program.rebind(v, where)
        program.declare(new, v.more.result, where)
        return True

    return call


def keeping(text):
    """An object that makes a tensor when it is first asked for it, and gives the same one from then on."""

    def call(program, name):
        where = program.place()
        device = program.device(where)
        if not device:
            return False
        new = program.fresh("keeper")
        program.emit(f"{new} = {name}()")
        for _ in range(program.random.randint(1, 2)):
            program.emit(f"{(kept := program.fresh('kept'))} = " + text.format(object=new, device=device))
            program.declare(kept, "vec", where)
        return True

    return call


IDIOMS = [
    # Records
    (["def NAME(batch, device):", "    return Batch(*(t.to(device) for t in batch))"], moving("{name}(Batch({x}, torch.ones(4)), {device}).x")),
    (["def NAME(batch, device):", "    return batch._replace(x=batch.x.to(device))"], moving("{name}(Batch({x}, torch.ones(4)), {device}).x")),
    (["def NAME(sample, device):", "    return replace(sample, x=sample.x.to(device))"], moving("{name}(Sample({x}, torch.ones(4)), {device}).x")),
    (["@dataclass", "class NAME:", "    x: torch.Tensor", "    y: torch.Tensor", "", "    def to(self, device):", "        return NAME(self.x.to(device), self.y.to(device))"],
     moving("{name}({x}, torch.ones(4)).to({device}).x")),
    (["@dataclass", "class NAME:", "    x: torch.Tensor", "    y: torch.Tensor", "", "    def to(self, device):", "        for f in fields(self):",
      "            setattr(self, f.name, getattr(self, f.name).to(device))", "        return self"], moving("{name}({x}, torch.ones(4)).to({device}).x")),
    (["@dataclass", "class NAME:", "    x: torch.Tensor", "    device: str = \"cpu\"", "", "    def __post_init__(self):", "        self.x = self.x.to(self.device)"],
     moving("{name}({x}, {device}).x")),
    (["@dataclass", "class NAME:", "    name: str = \"state\"", "    state: torch.Tensor = field(default_factory=lambda: torch.zeros(4))"], choosing("{name}().state", "vec", CPU)),
    (["class NAME(NamedTuple):", "    state: torch.Tensor", "    step: int = 0"], holder("{name}(torch.zeros(4, device={device}))", "state", assignable=False)),
    # Arguments
    (["def NAME(x, device, non_blocking=False):", "    return x.to(device, non_blocking=non_blocking)"], moving("partial({name}, device={device})({x})")),
    (["def NAME(x, device, non_blocking=False):", "    return x.to(device, non_blocking=non_blocking)"], moving("partial({name}, {x})({device})")),
    (["def NAME(*args, device):", "    return [a.to(device) for a in args]"], moving("{name}({x}, torch.zeros(4), device={device})[0]")),
    (["def NAME(*args, **kwargs):", "    return torch.zeros(*args, **kwargs)"], making("{name}(4, device={device})", "vec")),
    (["def NAME(*args, **kwargs):", "    return torch.zeros(*args, **kwargs)"], making("{name}(*[4], **{{\"device\": {device}}})", "vec")),
    (["NAME = {\"zeros\": torch.zeros, \"ones\": torch.ones}"], making("{name}[\"ones\"](4, device={device})", "vec")),
    (["class NAME:", "    rate = 0.5", "", "    def __init__(self, **options):", "        self.options = options", "", "    def make(self):", "        return torch.full((4,), self.rate, **self.options)"],
     making("{name}(device={device}).make()", "vec")),
    (["def NAME(x, **others):", "    return x + sum(others.values())"], folding("{name}({}, a={}, b={})", "vec", 3)),
    (["def NAME(*tensors):", "    first, *rest = tensors", "    for t in rest:", "        first = first * t", "    return first"], folding("{name}({}, {}, {})", "vec", 3)),
    (["def NAME(tensors):", "    return reduce(lambda a, b: a + b, tensors)"], folding("{name}([{}, {}])", "vec", 2)),
    # Generators
    (["def NAME(tensors, device):", "    for t in tensors:", "        yield t.to(device)"], moving("next({name}([{x}], {device}))")),
    (["def NAME(tensors, device):", "    for t in tensors:", "        yield t.to(device)"], moving("list({name}([{x}, torch.ones(4)], {device}))[0]")),
    (["def NAME(tensors, device):", "    yield from (t.to(device) for t in tensors)"], moving("next(iter({name}([{x}], {device})))")),
    (["class NAME:", "    def __init__(self, device):", "        self.device = device", "", "    def __iter__(self):", "        for _ in range(2):", "            yield torch.zeros(4, device=self.device)"],
     making("sum({name}({device}))", "vec")),
    (["class NAME:", "    def __init__(self, device):", "        self.device = device", "", "    def __len__(self):", "        return 2", "", "    def __getitem__(self, i):", "        return torch.ones(4, device=self.device)"],
     making("{name}({device})[0]", "vec")),
    # Managers, handlers
    (["@contextmanager", "def NAME(x, device):", "    yield x.to(device)"], entering("{name}({x}, {device})")),
    (["@contextmanager", "def NAME(x, device):", "    moved = x.to(device)", "    try:", "        yield moved", "    finally:", "        del moved"], entering("{name}({x}, {device})")),
    (["class NAME:", "    def __init__(self, x, device):", "        self.x = x", "        self.device = device", "", "    def __enter__(self):", "        return self.x.to(self.device)", "",
      "    def __exit__(self, *error):", "        return False"], entering("{name}({x}, {device})")),
    (["def NAME(device):", "    with torch.device(device):", "        return torch.zeros(4)"], making("{name}({device})", "vec")),
    (["def NAME(x, device):", "    try:", "        return x.to(device)", "    finally:", "        print(\"moved\")"], moving("{name}({x}, {device})")),
    (["def NAME(device):", "    try:", "        x = torch.zeros(4, device=device)", "    except ValueError:", "        x = torch.zeros(4)", "    else:", "        x = x + 1", "    finally:", "        print(\"made\")", "    return x"],
     making("{name}({device})", "vec")),
    # Classes
    (["class NAMEBase:", "    def __init__(self, device):", "        self.device = device", "", "    def put(self, x):", "        return x.to(self.device)", "", "",
      "class NAME(NAMEBase):", "    def __init__(self, device, name=\"x\"):", "        super().__init__(device)", "        self.name = name", "", "    def put(self, x):", "        return super().put(x).clone()"],
     moving("{name}({device}).put({x})")),
    (["class NAMEBase:", "    def place(self):", "        return \"cpu\"", "", "    def put(self, x):", "        return x.to(self.place())", "", "", "class NAME(NAMEBase):", "    def __init__(self, device):",
      "        self._device = device", "", "    def place(self):", "        return self._device"], moving("{name}({device}).put({x})")),
    (["class NAME:", "    def __init__(self):", "        self._device = \"cpu\"", "", "    @property", "    def device(self):", "        return self._device", "", "    @device.setter", "    def device(self, value):",
      "        self._device = torch.device(value)", "", "    def put(self, x):", "        return x.to(self.device)"],
     stepping(["{object} = {name}()", "{object}.device = {device}"], "{object}.put({x})")),
    (["class NAME:", "    def __init__(self, device):", "        self.device = device", "", "    @classmethod", "    def on(cls, device):", "        return cls(device)", "", "    def put(self, x):", "        return x.to(self.device)"],
     stepping(["{object} = {name}.on({device})"], "{object}.put({x})")),
    (["class NAME:", "    device = \"cpu\"", "", "    def put(self, x):", "        return x.to(self.device)"], stepping(["{object} = {name}()", "{object}.device = {device}"], "{object}.put({x})")),
    (["class NAME:", "    def __init__(self, **options):", "        self.__dict__.update(options)", "", "    def put(self, x):", "        return x.to(self.device)"],
     stepping(["{object} = {name}(device={device})"], "{object}.put({x})")),
    (["class NAME:", "    def __init__(self, **options):", "        for key, value in options.items():", "            setattr(self, key, value)", "", "    def put(self, x):", "        return x.to(self.device)"],
     stepping(["{object} = {name}(device={device})"], "{object}.put({x})")),
    # Functions
    (["def NAME(function):", "    @wraps(function)", "    def inner(x, device):", "        return function(x.to(device))", "", "    return inner"], moving("{name}(torch.clone)({x}, {device})")),
    (["def NAME(xs, device):", "    return list(map(lambda t: t.to(device), xs))"], moving("{name}([{x}], {device})[0]")),
    (["def NAME(x, device):", "    return torch.empty_like(x, device=device).copy_(x)"], moving("{name}({x}, {device})")),
    (["def NAME(x, device):", "    match str(device):", "        case \"cpu\":", "            return x.cpu()", "        case _:", "            return x.to(device)"], moving("{name}({x}, {device})")),
    (["def NAME(x, device):", "    if x.device == torch.device(device):", "        return x", "    return x.to(device)"], moving("{name}({x}, {device})")),
    (["def NAME(tree, device):", "    if torch.is_tensor(tree):", "        return tree.to(device)", "    if isinstance(tree, dict):", "        return {k: NAME(v, device) for k, v in tree.items()}",
      "    return type(tree)(NAME(v, device) for v in tree)"], moving("{name}([{x}, torch.zeros(4)], {device})[0]")),
    (["@lru_cache(maxsize=None)", "def NAME():", "    return torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")"], choosing("{name}()", "dev", BEST)),
    (["def NAME(x, y):", "    out = torch.zeros_like(x)", "    out.scatter_add_(0, torch.arange(4, device=x.device), y)", "    return out"], folding("{name}({}, {})", "vec", 2)),
    (["def NAME(x, y):", "    out = x.new_empty(2, 4)", "    out[0] = x", "    out[1] = y", "    return out.mean(0)"], folding("{name}({}, {})", "vec", 2)),
    (["def NAME(x, y):", "    out = x.clone()", "    out[y > 0] = 0.0", "    return out"], folding("{name}({}, {})", "vec", 2)),
    # Modules, and what is kept
    (["def NAME(module, device):", "    for p in module.parameters():", "        p.data = p.data.to(device)"], placing("{name}({module}, {device})")),
    (["class NAME:", "    def __init__(self, module, device):", "        self.device = torch.device(device)", "        self.module = module.to(self.device)", "", "    def run(self, *inputs):",
      "        return self.module(*(t.to(self.device) for t in inputs))"], running("{name}({module}, {device}).run({given})")),
    (["def NAME(module, device, *inputs):", "    module = module.to(device)", "    with torch.no_grad():", "        return module(*[t.to(device) for t in inputs])"], running("{name}({module}, {device}, {given})")),
    (["class NAME:", "    def __init__(self):", "        self.cache = None", "", "    def get(self, device):", "        if self.cache is None:", "            self.cache = torch.zeros(4, device=device)", "        return self.cache"],
     keeping("{object}.get({device})")),
    (["class NAME:", "    def __init__(self):", "        self.cache = {}", "", "    def get(self, device):", "        if device not in self.cache:", "            self.cache[device] = torch.ones(4, device=device)",
      "        return self.cache[device]"], keeping("{object}.get({device})")),
    (["class NAME:", "    __slots__ = (\"state\",)", "", "    def __init__(self, device):", "        self.state = torch.zeros(4, device=device)"], holder("{name}({device})", "state")),
    (["def NAME(device):", "    return SimpleNamespace(state=torch.zeros(4, device=device))"], holder("{name}({device})", "state")),
    (["class NAME(dict):", "    def __getattr__(self, name):", "        return self[name]"], holder("{name}(state=torch.zeros(4, device={device}))", "state", assignable=False)),
]  # fmt: skip
