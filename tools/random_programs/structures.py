"""Parts of larger programs: modules in containers and on several devices, copies of their states, hooks, caches, patterns, iterators."""

from helpers import SECOND, choosing, folding, holder, making, moving, placing
from idioms import stepping
from scope import BEST, CPU


def calling(steps, text, given="there", gives="there"):
    """An object that is made for a device, and is then called with a vector: `given` and `gives` say where that is to be, and where the
    result is."""

    def call(program, name):
        there, elsewhere = program.place(), program.place()
        device = program.device(there)
        if not device:
            return False
        new = program.fresh("object")
        for step in steps:
            program.emit(step.format(name=name, object=new, device=device))
        places = {"there": there, "any": elsewhere, "cpu": CPU}
        x = program.operand("vec", places[given])
        program.emit(f"{(result := program.fresh('called'))} = " + text.format(name=name, object=new, x=x, device=device))
        program.declare(result, "vec", places[gives])
        return True

    return call


def staying(text):
    """A helper that is given a tensor and a device, and leaves the tensor where it is."""

    def call(program, name):
        v, device = program.some(), program.device(program.place())
        if not v or not device:
            return False
        program.emit(f"{(new := program.fresh('kept'))} = " + text.format(name=name, x=v.text, device=device))
        program.declare(new, v.kind, v.where)
        return True

    return call


def copying(steps, moved=False):
    """A module like another one; it is where that is, or where it is moved to."""

    def call(program, name):
        modules = [v for v in program.visible("module") if v.assignable and "weight" in v.more.parameters]
        if not modules:
            return False
        v = program.choose(modules)
        where = program.place() if moved else v.where
        device = program.device(where) if moved else ""
        if device is None:
            return False
        new = program.fresh("copy")
        for step in steps:
            program.emit(step.format(name=name, module=v.text, new=new, device=device))
        program.declare(new, "module", where, v.more)
        return True

    return call


def looking(text):
    """A tensor of a module's state."""

    def call(program, name):
        modules = [v for v in program.visible("module") if v.assignable and "weight" in v.more.parameters]
        if not modules:
            return False
        v = program.choose(modules)
        program.emit(f"{(new := program.fresh('looked'))} = " + text.format(name=name, module=v.text))
        program.declare(new, "vec" if "LayerNorm" in v.more.name else "mat", v.where, assignable=False)
        return True

    return call


def hooking(steps, gives):
    """A layer with a hook; `gives` says where its result is besides where the layer is."""

    def call(program, name):
        where = program.place()
        device = program.device(where)
        if not device:
            return False
        new = program.fresh("hooked")
        for step in steps:
            program.emit(step.format(name=name, object=new, device=device))
        given = program.operand("vec", where if gives != "any" else program.place())
        program.emit(f"{(out := program.fresh('out'))} = {new}({given})")
        program.declare(out, "vec", CPU if gives == "cpu" else where)
        return True

    return call


def averaging(program, name):
    """An average of weights that is kept while the module may go elsewhere."""
    modules = [v for v in program.visible("module") if v.assignable and "weight" in v.more.parameters]
    if not modules:
        return False
    v = program.choose(modules)
    new = program.fresh("average")
    program.emit(f"{new} = {name}({v.text})")
    if program.chance(0.5):
        program.do_module_move()
    program.emit(f"{new}.update({v.text})")
    return True


LINEAR = "nn.Linear(4, 4)"

STRUCTURES = [
    # Generators and iterators that are given
    (["def NAME(tensors, device):", "    return [t.to(device) for t in tensors]"], moving("{name}((t for t in [{x}, torch.zeros(4)]), {device})[0]")),
    (["def NAME_batches(x):", "    for _ in range(2):", "        yield x", "", "", "def NAME(batches, device):", "    for batch in batches:", "        batch = batch.to(device)", "    return batch"],
     moving("{name}({name}_batches({x}), {device})")),
    (["def NAME(batches, device):", "    for x, y in batches:", "        yield x.to(device), y"], moving("next({name}([({x}, 1)], {device}))[0]")),
    (["class NAME:", "    def __init__(self, tensors, device):", "        self.tensors = iter(tensors)", "        self.device = device", "", "    def __iter__(self):", "        return self", "", "    def __next__(self):",
      "        return next(self.tensors).to(self.device)"], moving("list({name}([{x}, torch.zeros(4)], {device}))[0]")),
    (["class NAME:", "    def __init__(self, loader, device):", "        self.loader = loader", "        self.device = device", "", "    def __len__(self):", "        return len(self.loader)", "", "    def __iter__(self):",
      "        for x, y in self.loader:", "            yield x.to(self.device), y"], moving("next(iter({name}([({x}, 1)], {device})))[0]")),
    (["def NAME(tensors, device):", "    return [t.to(device) for t in itertools.chain(tensors, [torch.zeros(4)])]"], moving("{name}([{x}], {device})[0]")),
    (["def NAME(tensors, device):", "    first = next(itertools.islice(tensors, 1))", "    return first.to(device)"], moving("{name}([{x}], {device})")),
    (["def NAME(x):", "    steps = itertools.count()", "    while next(steps) < 2:", "        x = x * 2", "    return x"], folding("{name}({})", "vec", 1)),
    (["def NAME(first, second):", "    return sum(a * b for a, b in itertools.product(first, second))"], folding("{name}([{}], [{}])", "vec", 2)),
    (["def NAME(first, second):", "    return sum(itertools.starmap(torch.mul, zip(first, second)))"], folding("{name}([{}], [{}])", "vec", 2)),
    (["def NAME(queue, device):", "    done = []", "    while queue:", "        done.append(queue.pop().to(device))", "    return done"], moving("{name}([{x}], {device})[0]")),
    (["def NAME(tensors, device):", "    for i, t in enumerate(tensors):", "        tensors[i] = t.to(device)", "    return tensors"], moving("{name}([{x}, torch.zeros(4)], {device})[0]")),
    (["def NAME(tensors, device):", "    for t in tensors:", "        t = t.to(device)", "    return tensors"], staying("{name}([{x}], {device})[0]")),
    (["def NAME(tensors, device):", "    return [moved for t in tensors if (moved := t.to(device)) is not None]"], moving("{name}([{x}], {device})[0]")),
    (["def NAME(groups, device):", "    return [t.to(device) for group in groups for t in group]"], moving("{name}([[torch.zeros(4)], [{x}]], {device})[1]")),
    (["def NAME(batch, device):", "    return {**batch, \"x\": batch[\"x\"].to(device)}"], moving("{name}({{\"x\": {x}, \"y\": 1}}, {device})[\"x\"]")),
    (["def NAME(batch, device):", "    batch |= {\"x\": batch[\"x\"].to(device)}", "    return batch"], moving("{name}({{\"x\": {x}}}, {device})[\"x\"]")),
    (["def NAME(batch, device):", "    for name in (\"x\", \"y\"):", "        if name in batch:", "            batch[name] = batch[name].to(device)", "    return batch"], moving("{name}({{\"x\": {x}, \"z\": 1}}, {device})[\"x\"]")),
    (["def NAME(batch, device):", "    return dict(zip(batch, (t.to(device) for t in batch.values())))"], moving("{name}({{\"x\": {x}}}, {device})[\"x\"]")),
    (["def NAME(x, device):", "    first = second = x.to(device)", "    return second"], moving("{name}({x}, {device})")),
    # Functions that make and take functions
    (["NAME = partial(torch.full, (4,), 1.0)"], making("{name}(device={device})", "vec")),
    (["NAME = partial(nn.Linear, 4, 4, bias=False)"], calling(["{object} = {name}().to({device})"], "{object}({x})")),
    (["class NAME:", "    def put(self, x, device):", "        return x.to(device)"], moving("partial({name}().put, device={device})({x})")),
    (["def NAME(device):", "    def wrap(function):", "        @wraps(function)", "        def inner(*args, **kwargs):", "            return function(*(a.to(device) for a in args), **kwargs)", "", "        return inner", "", "    return wrap"],
     moving("{name}({device})(torch.clone)({x})")),
    (["class NAME:", "    def __init__(self, function):", "        self.function = function", "", "    def __call__(self, x, device):", "        return self.function(x).to(device)", "", "",
      "@NAME", "def NAME_clone(x):", "    return x.clone()"], moving("{name}_clone({x}, {device})")),
    (["def NAME(function):", "    @wraps(function)", "    def inner(*args, **kwargs):", "        return function(*args, **kwargs).cpu()", "", "    return inner", "", "",
      "@NAME", "def NAME_double(x):", "    return x * 2"], calling([], "{name}_double({x})", given="any", gives="cpu")),
    (["def NAME():", "    total = None", "", "    def add(x):", "        nonlocal total", "        total = x if total is None else total + x", "        return total", "", "    return add"],
     calling(["{object} = {name}()", "{object}(torch.zeros(4, device={device}))"], "{object}({x})")),
    (["NAME_seen = []", "", "", "def NAME(x):", "    NAME_seen.append(x)", "    return NAME_seen[-1]"], folding("{name}({})", "vec", 1)),
    (["NAME_seen = {}", "", "", "def NAME(size, device):", "    key = (size, str(device))", "    if key not in NAME_seen:", "        NAME_seen[key] = torch.zeros(size, device=device)", "    return NAME_seen[key]"],
     making("{name}(4, {device})", "vec")),
    (["NAME_seen = {}", "", "", "def NAME(size, device):", "    if size not in NAME_seen:", "        NAME_seen[size] = torch.zeros(size, device=device)", "    return NAME_seen[size]"], making("{name}(4, {device})", "vec")),
    (["NAME_state = None", "", "", "def NAME(device):", "    global NAME_state", "    if NAME_state is None:", "        NAME_state = torch.zeros(4)", "    NAME_state = NAME_state.to(device)", "    return NAME_state"],
     making("{name}({device})", "vec")),
    (["@singledispatch", "def NAME(data, device):", "    return data", "", "", "@NAME.register", "def _(data: torch.Tensor, device):", "    return data.to(device)", "", "", "@NAME.register", "def _(data: list, device):",
      "    return [NAME(d, device) for d in data]"], moving("{name}([{x}], {device})[0]")),
    (["def NAME(data, device):", "    return tree_map(lambda t: t.to(device), data)"], moving("{name}({{\"x\": [{x}]}}, {device})[\"x\"][0]")),
    (["def NAME(x, device, move=lambda t, device: t.to(device)):", "    return move(x, device)"], moving("{name}({x}, {device})")),
    (["def NAME(*steps):", "    def run(x):", "        for step in steps:", "            x = step(x)", "        return x", "", "    return run"], moving("{name}(torch.clone, lambda t: t.to({device}))({x})")),
    # Early returns, patterns
    (["def NAME(data, device):", "    match data:", "        case torch.Tensor():", "            return data.to(device)", "        case [first, *_]:", "            return NAME(first, device)", "        case {\"x\": x}:", "            return NAME(x, device)",
      "    return data"], moving("{name}([{x}, 1], {device})")),
    (["def NAME(data, device):", "    match data:", "        case torch.Tensor():", "            return data.to(device)", "        case [first, *_]:", "            return NAME(first, device)", "        case {\"x\": x}:", "            return NAME(x, device)",
      "    return data"], moving("{name}({{\"x\": {x}}}, {device})")),
    (["def NAME(sample, device):", "    match sample:", "        case Sample(x=x, y=None):", "            return x", "        case Sample(x=x):", "            return x.to(device)"], moving("{name}(Sample({x}, torch.zeros(4)), {device})")),
    (["def NAME(x, device):", "    if not torch.is_tensor(x):", "        return None", "    if x.dim() == 9:", "        return None", "    return x.to(device)"], moving("{name}({x}, {device})")),
    (["def NAME(x, device):", "    try:", "        return x.to(device)", "    except AttributeError:", "        return x"], moving("{name}({x}, {device})")),
    (["def NAME(tensors, name):", "    for key, t in tensors.items():", "        if key == name:", "            return t", "    raise KeyError(name)"], staying("{name}({{\"a\": torch.zeros(4), \"b\": {x}}}, \"b\")")),
    (["def NAME(x, mode, device):", "    if mode == \"keep\":", "        return x", "    elif mode == \"move\":", "        return x.to(device)", "    raise ValueError(mode)"], moving("{name}({x}, \"move\", {device})")),
    (["def NAME(x, mode, device):", "    if mode == \"keep\":", "        return x", "    elif mode == \"move\":", "        return x.to(device)", "    raise ValueError(mode)"], staying("{name}({x}, \"keep\", {device})")),
    # Devices by another name
    (["class NAME(Enum):", "    HOST = \"cpu\"", "    BEST = \"cuda\" if torch.cuda.is_available() else \"cpu\""], choosing("torch.zeros(4, device={name}.BEST.value)", "vec", BEST)),
    (["class NAME(Enum):", "    HOST = \"cpu\"", "    BEST = \"cuda\" if torch.cuda.is_available() else \"cpu\""], choosing("torch.zeros(4).to({name}[\"HOST\"].value)", "vec", CPU)),
    (["class NAME:", "    DEVICE = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")", "", "    @classmethod", "    def zeros(cls):", "        return torch.zeros(4, device=cls.DEVICE)"], choosing("{name}.zeros()", "vec", BEST)),
    (["NAME = torch.cuda.is_available"], choosing("torch.zeros(4, device=\"cuda\" if {name}() else \"cpu\")", "vec", BEST)),
    (["def NAME(index):", "    return f\"cuda:{index}\" if torch.cuda.is_available() else \"cpu\""], choosing("torch.zeros(4).to({name}(0))", "vec", BEST)),
    (["def NAME(x, device):", "    if str(device).startswith(\"cuda\"):", "        return x.cuda(device)", "    return x.cpu()"], moving("{name}({x}, {device})")),
    (["def NAME(x, device):", "    if torch.device(device).type == \"cuda\":", "        return x.to(device)", "    return x.cpu()"], moving("{name}({x}, {device})")),
    (["def NAME(x, device):", "    kind = torch.device(device).type", "    return {\"cpu\": lambda: x.cpu(), \"cuda\": lambda: x.to(device)}[kind]()"], moving("{name}({x}, {device})")),
    (["NAME = {\"device\": os.environ.get(\"NAME_DEVICE\", \"cpu\")}"], choosing("torch.zeros(4, device={name}[\"device\"])", "vec", CPU)),
    (["def NAME():", "    if torch.cuda.device_count() > 1:", "        with torch.cuda.device(1):", "            return torch.zeros(4, device=\"cuda\")", "    return torch.zeros(4)"], choosing("{name}()", "vec", SECOND)),
    (["def NAME(x):", "    if torch.cuda.device_count() > 1:", "        with torch.cuda.device(1):", "            x = x.cuda()", "    return x"], choosing("{name}(torch.zeros(4))", "vec", SECOND)),
    (["@contextmanager", "def NAME(device):", "    torch.set_default_device(device)", "    try:", "        yield", "    finally:", "        torch.set_default_device(None)", "", "", "def NAME_zeros(device):", "    with NAME(device):",
      "        return torch.zeros(4)"], making("{name}_zeros({device})", "vec")),
    (["def NAME(device):", "    with torch.no_grad(), torch.device(device):", "        return torch.arange(4.0)"], making("{name}({device})", "vec")),
    (["def NAME(device):", "    with torch.device(device):", "        x = torch.zeros(4)", "    return x + torch.ones(4).to(x)"], making("{name}({device})", "vec")),
    # Records and classes
    (["@dataclass", "class NAME:", "    x: torch.Tensor", "    y: torch.Tensor = None", "", "    def to(self, device):",
      "        return NAME(**{f.name: t.to(device) if (t := getattr(self, f.name)) is not None else None for f in fields(self)})"], moving("{name}({x}).to({device}).x")),
    (["@dataclass", "class NAME:", "    x: torch.Tensor", "    y: torch.Tensor = None", "", "    def to(self, device):", "        for name in (\"x\", \"y\"):", "            value = getattr(self, name)", "            if value is not None:",
      "                setattr(self, name, value.to(device))", "        return self"], moving("{name}({x}).to({device}).x")),
    (["@dataclass(frozen=True)", "class NAME:", "    x: torch.Tensor", "    size: int = 4", "", "    def to(self, device):", "        return replace(self, x=self.x.to(device))"], moving("{name}({x}).to({device}).x")),
    (["class NAME(list):", "    def to(self, device):", "        return NAME(t.to(device) for t in self)"], moving("{name}([{x}]).to({device})[0]")),
    (["class NAME(dict):", "    def to(self, device):", "        return NAME({k: v.to(device) for k, v in self.items()})"], moving("{name}(x={x}).to({device})[\"x\"]")),
    (["class NAME:", "    def __init__(self, *tensors):", "        self.tensors = tensors", "", "    def __iter__(self):", "        return iter(self.tensors)", "", "    def to(self, device):", "        return NAME(*(t.to(device) for t in self))"],
     moving("list({name}({x}, torch.zeros(4)).to({device}))[0]")),
    (["class NAME:", "    table = torch.zeros(4)", "", "    @classmethod", "    def move(cls, device):", "        cls.table = cls.table.to(device)", "        return cls"], holder("{name}.move({device})", "table", assignable=False)),
    (["class NAME:", "    table = torch.zeros(4)", "", "    def to(self, device):", "        self.table = self.table.to(device)", "        return self"], holder("{name}().to({device})", "table")),
    (["class NAME:", "    table = torch.zeros(4)"], choosing("{name}.table", "vec", CPU)),
    (["class NAMEMixin:", "    def put(self, x):", "        return x.to(self.device)", "", "", "class NAME(NAMEMixin):", "    def __init__(self, device):", "        self.device = device"], moving("{name}({device}).put({x})")),
    (["class NAMEMixin:", "    def setup(self, **options):", "        self.device = options.pop(\"device\")", "        super().setup(**options)", "", "", "class NAMEBase:", "    def setup(self):", "        self.ready = True", "", "    def put(self, x):",
      "        return x.to(self.device)", "", "", "class NAME(NAMEMixin, NAMEBase):", "    pass"], stepping(["{object} = {name}()", "{object}.setup(device={device})"], "{object}.put({x})")),
    (["class NAME:", "    def __init__(self, inner):", "        self.inner = inner", "", "    def __getattr__(self, name):", "        return getattr(self.inner, name)"], moving("{name}(SimpleNamespace(put=lambda t: t.to({device}))).put({x})")),
    (["class NAMEInner:", "    def put(self, x, device):", "        return x.to(device)", "", "", "class NAME:", "    def __init__(self, inner):", "        self.inner = inner", "", "    def put(self, *args, **kwargs):",
      "        return self.inner.put(*args, **kwargs)"], moving("{name}({name}Inner()).put({x}, device={device})")),
    (["class NAME:", "    instance = None", "", "    @classmethod", "    def get(cls, device):", "        if cls.instance is None:", "            cls.instance = cls()", "        cls.instance.device = device", "        return cls.instance", "",
      "    def put(self, x):", "        return x.to(self.device)"], moving("{name}.get({device}).put({x})")),
    (["class NAME:", "    def __init__(self, device):", "        self.device = device", "        self.kept = deque(maxlen=3)", "", "    def push(self, x):", "        self.kept.append(x.to(self.device))", "        return torch.stack(list(self.kept)).sum(0)"],
     calling(["{object} = {name}({device})"], "{object}.push({x})", given="any")),
    (["class NAME:", "    def __init__(self):", "        self.kept = defaultdict(list)", "", "    def push(self, key, x):", "        self.kept[key].append(x.detach().cpu())", "        return torch.stack(self.kept[key]).mean(0)"],
     calling(["{object} = {name}()"], "{object}.push(\"x\", {x})", given="any", gives="cpu")),
    (["class NAME:", "    def __init__(self, device):", "        self._cache = {}", "        self.device = device", "", "    def __getitem__(self, key):", "        if key not in self._cache:", "            self._cache[key] = torch.zeros(4, device=self.device)",
      "        return self._cache[key]"], making("{name}({device})[\"x\"]", "vec")),
    (["class NAME:", "    def __init__(self, device):", "        self.device = device", "", "    @cached_property", "    def state(self):", "        return torch.zeros(4, device=self.device)"], holder("{name}({device})", "state", assignable=False)),
    # Modules with more than parameters
    (["class NAME(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.register_buffer(\"state\", torch.zeros(4), persistent=False)", "        self.plain = torch.ones(4)", "", "    def forward(self, x):",
      "        return x + self.state"], calling(["{object} = {name}().to({device})"], "{object}({x})")),
    (["class NAME(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.register_buffer(\"state\", torch.zeros(4), persistent=False)", "        self.plain = torch.ones(4)", "", "    def forward(self, x):",
      "        return x + self.state"], calling(["{object} = {name}().to({device})"], "{object}.plain * {x}", given="cpu", gives="cpu")),
    (["class NAME(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.plain = torch.ones(4)", "        self.net = nn.Linear(4, 4)", "", "    def to(self, *args, **kwargs):", "        super().to(*args, **kwargs)",
      "        self.plain = self.plain.to(*args, **kwargs)", "        return self", "", "    def forward(self, x):", "        return self.net(x) * self.plain"], calling(["{object} = {name}().to({device})"], "{object}({x})")),
    (["class NAME(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.net = nn.Linear(4, 4)", "", "    @property", "    def device(self):", "        return next(self.parameters()).device", "", "    def forward(self, x):",
      "        return self.net(x.to(self.device))"], calling(["{object} = {name}().to({device})"], "{object}({x})", given="any")),
    (["class NAME(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.net = nn.Linear(4, 4)", "", "    def forward(self, x, state=None):", "        if state is None:", "            state = x.new_zeros(4)",
      "        return self.net(x) + state"], calling(["{object} = {name}().to({device})"], "{object}({x})")),
    (["class NAME(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.net = nn.Linear(4, 4)", "        self.state = None", "", "    def forward(self, x):", "        if self.state is None:",
      "            self.state = torch.zeros_like(x)", "        self.state = self.state + self.net(x).detach()", "        return self.state"], calling(["{object} = {name}().to({device})"], "{object}({x})")),
    (["class NAME(nn.Module):", "    def __init__(self, width=4, **options):", "        super().__init__()", "        self.net = nn.Linear(width, width, **options)", "", "    def forward(self, *args):", "        return self.net(*args)"],
     calling(["{object} = {name}(device={device})"], "{object}({x})")),
    (["class NAMEBase(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.build()", "", "    def build(self):", "        raise NotImplementedError", "", "", "class NAME(NAMEBase):", "    def build(self):",
      "        self.net = nn.Linear(4, 4)", "", "    def forward(self, x):", "        return self.net(x)"], calling(["{object} = {name}()", "{object}.to({device})"], "{object}({x})")),
    (["class NAME(nn.Module):", "    def __init__(self, net):", "        super().__init__()", "        self.net = net", "", "    def forward(self, x):", "        return self.net(x)"],
     calling(["{object}_net = nn.Linear(4, 4)", "{object} = {name}({object}_net).to({device})"], "{object}_net({x})")),
    (["class NAME(nn.Sequential):", "    def forward(self, x):", "        for part in self:", "            x = part(x) + x", "        return x"], calling(["{object} = {name}(nn.Linear(4, 4), nn.ReLU()).to({device})"], "{object}({x})")),
    (["class NAME(nn.ModuleList):", "    def run(self, x):", "        return sum(part(x) for part in self)"], calling(["{object} = {name}([nn.Linear(4, 4), nn.Linear(4, 4)]).to({device})"], "{object}.run({x})")),
    (["def NAME(module):", "    if isinstance(module, nn.Linear):", "        nn.init.zeros_(module.weight)"], calling(["{object} = nn.Sequential(nn.Linear(4, 4)).to({device})", "{object}.apply({name})"], "{object}({x})")),
    (["def NAME(device):", "    return lambda module: module.to(device)"], placing("{module}.apply({name}({device}))")),
    (["def NAME(module, device):", "    for child in module.modules():", "        child.to(device)"], placing("{name}({module}, {device})")),
    (["def NAME(*modules, device):", "    return [m.to(device) for m in modules]"], placing("{name}({module}, device={device})")),
    (["def NAME(modules, device):", "    for name, m in modules.items():", "        setattr(modules[name], \"device\", device)", "        m.to(device)"], placing("{name}({{\"net\": {module}}}, {device})")),
    (["def NAME(module, device):", "    for p in module.parameters():", "        p = p.to(device)", "    return module"], calling(["{object} = nn.Linear(4, 4)", "{name}({object}, {device})"], "{object}({x})", given="cpu", gives="cpu")),
    # Modules in containers, on several devices
    (["class NAME:", "    def __init__(self):", "        self.nets = {\"a\": nn.Linear(4, 4), \"b\": nn.Linear(4, 4)}", "", "    def to(self, device):", "        for net in self.nets.values():", "            net.to(device)", "        return self", "",
      "    def __call__(self, x):", "        return self.nets[\"b\"](self.nets[\"a\"](x))"], calling(["{object} = {name}().to({device})"], "{object}({x})")),
    (["class NAME(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.nets = [nn.Linear(4, 4), nn.Linear(4, 4)]", "", "    def forward(self, x):", "        for net in self.nets:", "            x = net(x)", "        return x"],
     calling(["{object} = {name}().to({device})"], "{object}({x})", given="cpu", gives="cpu")),
    (["class NAME(nn.Module):", "    def __init__(self):", "        super().__init__()", "        self.nets = {\"a\": nn.Linear(4, 4)}", "        for name, net in self.nets.items():", "            self.add_module(name, net)", "", "    def forward(self, x):",
      "        return self.nets[\"a\"](x)"], calling(["{object} = {name}().to({device})"], "{object}({x})")),
    (["class NAME:", "    def __init__(self, devices):", "        self.devices = devices", "        self.parts = [nn.Linear(4, 4).to(d) for d in devices]", "", "    def __call__(self, x):", "        for part, device in zip(self.parts, self.devices):",
      "            x = part(x.to(device))", "        return x"], calling(["{object} = {name}([\"cpu\", {device}])"], "{object}({x})", given="any")),
    (["def NAME(parts, devices):", "    for part, device in zip(parts, devices):", "        part.to(device)"], calling(["{object} = [nn.Linear(4, 4), nn.Linear(4, 4)]", "{name}({object}, [\"cpu\", {device}])"], "{object}[1]({x})")),
    (["def NAME(parts, devices):", "    for part, device in zip(parts, devices):", "        part.to(device)"], calling(["{object} = [nn.Linear(4, 4), nn.Linear(4, 4)]", "{name}({object}, [\"cpu\", {device}])"], "{object}[0]({x})", given="cpu", gives="cpu")),
    (["class NAME(nn.Module):", "    def __init__(self, first, second):", "        super().__init__()", "        self.first, self.second = first, second", "        self.one = nn.Linear(4, 4).to(first)", "        self.two = nn.Linear(4, 4).to(second)", "",
      "    def forward(self, x):", "        x = self.one(x.to(self.first))", "        return self.two(x.to(self.second))"], calling(["{object} = {name}(\"cpu\", {device})"], "{object}({x})", given="any")),
    (["class NAME(nn.Module):", "    def __init__(self, places):", "        super().__init__()", "        self.places = places", "        self.one = nn.Linear(4, 4)", "        self.two = nn.Linear(4, 4)", "", "    def spread(self):",
      "        for name, device in self.places.items():", "            getattr(self, name).to(device)", "        return self", "", "    def forward(self, x):", "        x = self.one(x.to(self.places[\"one\"]))", "        return self.two(x.to(self.places[\"two\"]))"],
     calling(["{object} = {name}({{\"one\": \"cpu\", \"two\": {device}}}).spread()"], "{object}({x})", given="any")),
    # States and copies of modules
    (["NAME = copy.deepcopy"], copying(["{new} = {name}({module})"])),
    (["NAME = copy.deepcopy"], copying(["{new} = {name}({module}).to({device})"], moved=True)),
    (["def NAME(module, device):", "    twin = copy.deepcopy(module)", "    twin.load_state_dict(module.state_dict())", "    return twin.to(device)"], copying(["{new} = {name}({module}, {device})"], moved=True)),
    (["def NAME(module):", "    state = {k: v.cpu() for k, v in module.state_dict().items()}", "    twin = copy.deepcopy(module)", "    twin.load_state_dict(state)", "    return twin"], copying(["{new} = {name}({module})"])),
    (["def NAME(module):", "    return {k: v.clone() for k, v in module.state_dict().items()}"], looking("{name}({module})[\"weight\"]")),
    (["def NAME(module):", "    return module.state_dict()"], looking("{name}({module})[\"weight\"]")),
    (["def NAME(module):", "    return dict(module.named_parameters())"], looking("{name}({module})[\"weight\"].detach()")),
    (["def NAME(module, name):", "    return next(p for n, p in module.named_parameters() if n.endswith(name))"], looking("{name}({module}, \"weight\").data")),
    (["def NAME(module, name):", "    return getattr(module, name)"], looking("{name}({module}, \"weight\").detach().clone()")),
    (["class NAME:", "    def __init__(self, module):", "        self.shadow = {k: v.clone() for k, v in module.state_dict().items()}", "", "    @torch.no_grad()", "    def update(self, module):", "        for k, v in module.state_dict().items():",
      "            self.shadow[k] = self.shadow[k] * 0.9 + v * 0.1"], averaging),
    (["class NAME:", "    def __init__(self, module):", "        self.shadow = [p.detach().clone() for p in module.parameters()]", "", "    @torch.no_grad()", "    def update(self, module):", "        for s, p in zip(self.shadow, module.parameters()):",
      "            s.mul_(0.9).add_(p, alpha=0.1)"], averaging),
    (["class NAME:", "    def __init__(self, module):", "        self.twin = copy.deepcopy(module)", "", "    @torch.no_grad()", "    def update(self, module):", "        for s, p in zip(self.twin.parameters(), module.parameters()):",
      "            s.lerp_(p, 0.1)"], averaging),
    # Hooks
    (["def NAME(module, args, output):", "    return output.cpu()"], hooking(["{object} = nn.Linear(4, 4).to({device})", "{object}.register_forward_hook({name})"], "cpu")),
    (["def NAME(module, args):", "    return tuple(a.to(module.weight.device) for a in args)"], hooking(["{object} = nn.Linear(4, 4).to({device})", "{object}.register_forward_pre_hook({name})"], "any")),
    (["NAME = {}", "", "", "def NAME_keep(module, args, output):", "    NAME[\"out\"] = output.detach()"],
     calling(["{object} = nn.Linear(4, 4).to({device})", "{object}.register_forward_hook({name}_keep)", "{object}(torch.zeros(4, device={device}))"], "{name}[\"out\"] + {x}")),
    # Losses, metrics, data
    (["def NAME(samples):", "    xs, ys = zip(*samples)", "    return torch.stack(xs), torch.tensor(ys)"], folding("{name}([({}, 1), ({}, 2)])[0].sum(0)", "vec", 2)),
    (["def NAME(samples):", "    return {key: torch.stack([s[key] for s in samples]) for key in samples[0]}"], folding("{name}([{{\"x\": {}}}, {{\"x\": {}}}])[\"x\"].mean(0)", "vec", 2)),
    (["class NAME:", "    def __init__(self, x):", "        self.x = x", "", "    def __len__(self):", "        return 4", "", "    def __getitem__(self, i):", "        return self.x[i], i", "", "    def batch(self, device):",
      "        xs, _ = zip(*(self[i] for i in range(len(self))))", "        return torch.stack(xs).to(device)"], moving("{name}({x}).batch({device})")),
    (["def NAME(x, y, reduction=\"mean\"):", "    losses = (x - y).abs()", "    if reduction == \"mean\":", "        return losses.mean()", "    return losses"], folding("{name}({}, {}, reduction=\"none\")", "vec", 2)),
    (["def NAME(x, y):", "    out = torch.empty_like(x)", "    torch.add(x, y, out=out)", "    return out"], folding("{name}({}, {})", "vec", 2)),
    (["def NAME(x, y):", "    out = torch.zeros(4, device=x.device)", "    mask = y > 0", "    out[mask] = 0.5", "    return torch.where(mask, out, y)"], folding("{name}({}, {})", "vec", 2)),
    (["def NAME(x, y):", "    index = torch.arange(4, device=x.device)", "    return x.clone().index_put_((index,), y, accumulate=True)"], folding("{name}({}, {})", "vec", 2)),
    (["def NAME(x, y):", "    return torch.zeros_like(x).scatter_(0, torch.arange(4).to(x.device), y)"], folding("{name}({}, {})", "vec", 2)),
    (["def NAME(x, y):", "    result = {}", "    result[\"both\"] = x", "    result[\"both\"] += y", "    return result[\"both\"]"], folding("{name}({}.clone(), {})", "vec", 2)),
]  # fmt: skip
