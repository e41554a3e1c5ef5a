"""Helpers as applications have them: settings, registries, callbacks, batches that are moved whole, arguments that are handed on."""

from helpers import choosing, folding, holder, making, moving
from idioms import running, stepping
from scope import BEST, CPU


def belonging(text):
    """An object that has a module with a weight, and is where that is."""

    def call(program, name):
        modules = [v for v in program.visible("module") if v.assignable and "weight" in v.more.parameters]
        if not modules:
            return False
        v = program.choose(modules)
        given = ", ".join(program.operand(kind, program.place()) for kind in v.more.takes)
        program.emit(f"{(new := program.fresh('ran'))} = " + text.format(name=name, module=v.text, given=given))
        program.declare(new, v.more.result, v.where)
        return True

    return call


def changing(text, result):
    """A batch that is changed where it is: a dict with a tensor and something else in it."""

    def call(program, name):
        v, where = program.some(), program.place()
        device = v and program.device(where)
        if not device:
            return False
        new = program.fresh("batch")
        program.emit(f"{new} = {{\"x\": {v.text}, \"size\": 4}}")
        program.emit(text.format(name=name, batch=new, device=device))
        program.emit(f"{(there := program.fresh('there'))} = " + result.format(batch=new))
        program.declare(there, v.kind, where)
        return True

    return call


APPLICATIONS = [
    # Devices that may be left out
    (["def NAME(x, device=None):", "    device = device or (\"cuda\" if torch.cuda.is_available() else \"cpu\")", "    return x.to(device)"], moving("{name}({x}, {device})")),
    (["def NAME(x, device=None):", "    return x if device is None else x.to(device)"], moving("{name}({x}, {device})")),
    (["def NAME(x, device=None):", "    return x if device is None else x.to(device)"], folding("{name}({})", "vec", 1)),
    (["class NAME:", "    def __init__(self, device=None):", "        if device is None:", "            device = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")", "        self.device = device", "",
      "    def put(self, x):", "        return x.to(self.device)"], moving("{name}({device}).put({x})")),
    (["class NAME:", "    def __init__(self, device=None):", "        if device is None:", "            device = torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")", "        self.device = device", "",
      "    def zeros(self):", "        return torch.zeros(4, device=self.device)"], choosing("{name}().zeros()", "vec", BEST)),
    (["class NAME:", "    def put(self, x):", "        return x.to(getattr(self, \"device\", \"cpu\"))"], stepping(["{object} = {name}()", "{object}.device = {device}"], "{object}.put({x})")),
    (["class NAME:", "    def zeros(self):", "        return torch.zeros(4, device=getattr(self, \"device\", \"cpu\"))"], choosing("{name}().zeros()", "vec", CPU)),
    # Early returns
    (["def NAME(x, device):", "    if device is None or x is None:", "        return x", "    return x.to(device)"], moving("{name}({x}, {device})")),
    (["def NAME(x):", "    if not torch.cuda.is_available():", "        return x.cpu()", "    return x.cuda()"], choosing("{name}(torch.zeros(4))", "vec", BEST)),
    (["def NAME(tensors, device):", "    for t in tensors:", "        if t is not None:", "            return t.to(device)", "    return torch.zeros(4)"], moving("{name}([None, {x}], {device})")),
    (["def NAME(x):", "    if x.is_cuda:", "        return torch.ones(4).cuda()", "    return torch.ones(4)"], choosing("{name}(torch.zeros(4))", "vec", CPU)),
    # What something is
    (["def NAME(data, device):", "    if isinstance(data, torch.Tensor):", "        return data.to(device)", "    elif isinstance(data, dict):", "        return {k: NAME(v, device) for k, v in data.items()}",
      "    elif isinstance(data, (list, tuple)):", "        return [NAME(v, device) for v in data]", "    else:", "        return data"], moving("{name}({{\"x\": [{x}, 3]}}, {device})[\"x\"][0]")),
    (["def NAME(data, device):", "    if hasattr(data, \"to\"):", "        return data.to(device)", "    return {k: NAME(v, device) for k, v in data.items()}"], moving("{name}({{\"x\": {x}}}, {device})[\"x\"]")),
    (["def NAME(data, device):", "    if isinstance(data, str):", "        return data", "    return data.to(device)"], moving("{name}({x}, {device})")),
    # Batches
    (["def NAME(batch, device):", "    return {k: v.to(device) if torch.is_tensor(v) else v for k, v in batch.items()}"], moving("{name}({{\"x\": {x}, \"size\": 4}}, {device})[\"x\"]")),
    (["def NAME(batch, device):", "    for k, v in batch.items():", "        if isinstance(v, torch.Tensor):", "            batch[k] = v.to(device)"], changing("{name}({batch}, {device})", "{batch}[\"x\"]")),
    (["def NAME(batch, device):", "    for k in list(batch):", "        if k != \"size\":", "            batch[k] = batch[k].to(device)", "    return batch"], changing("{batch} = {name}({batch}, {device})", "{batch}[\"x\"]")),
    (["def NAME(batch, device):", "    batch.update({k: v.to(device) for k, v in batch.items() if torch.is_tensor(v)})"], changing("{name}({batch}, {device})", "{batch}.get(\"x\")")),
    (["def NAME(batch, device):", "    x, size = batch[\"x\"], batch[\"size\"]", "    return {\"x\": x.to(device), \"size\": size}"], changing("{batch} = {name}({batch}, {device})", "{batch}[\"x\"]")),
    (["def NAME(batch, device):", "    return tuple(t.to(device, non_blocking=True) for t in batch)"], moving("{name}(({x}, torch.zeros(4)), {device})[0]")),
    (["def NAME(batch, device):", "    x, *rest = [t.to(device) for t in batch]", "    return x"], moving("{name}([{x}, torch.zeros(4), torch.ones(4)], {device})")),
    # Tables of classes and functions
    (["NAME_table = {}", "", "", "def NAME_register(key):", "    def add(function):", "        NAME_table[key] = function", "        return function", "", "    return add", "", "",
      "@NAME_register(\"zeros\")", "def NAME(device):", "    return torch.zeros(4, device=device)"], making("{name}_table[\"zeros\"]({device})", "vec")),
    (["class NAMEPlain:", "    def __init__(self, device):", "        self.device = device", "", "    def put(self, x):", "        return x.to(self.device)", "", "",
      "class NAMECopy(NAMEPlain):", "    def put(self, x):", "        return super().put(x).clone()", "", "", "NAME = {\"plain\": NAMEPlain, \"copy\": NAMECopy}"], moving("{name}[\"copy\"]({device}).put({x})")),
    (["class NAME:", "    kinds = {}", "", "    def __init_subclass__(cls, **options):", "        super().__init_subclass__(**options)", "        NAME.kinds[cls.__name__] = cls", "", "    def put(self, x, device):",
      "        raise NotImplementedError", "", "", "class NAMEMove(NAME):", "    def put(self, x, device):", "        return x.to(device)"], moving("{name}Move().put({x}, {device})")),
    (["def NAME_plain(x, device):", "    return x.to(device)", "", "", "def NAME_copy(x, device):", "    return torch.empty_like(x, device=device).copy_(x)", "", "", "def NAME(kind):",
      "    return {\"plain\": NAME_plain, \"copy\": NAME_copy}[kind]"], moving("{name}(\"plain\")({x}, {device})")),
    (["def NAME(kind, *args, **options):", "    return globals()[\"NAME_\" + kind](*args, **options)", "", "", "def NAME_move(x, device):", "    return x.to(device)"], moving("{name}_move({x}, device={device})")),
    # Callbacks, and what is kept and called
    (["class NAME:", "    def __init__(self):", "        self.steps = []", "", "    def add(self, step):", "        self.steps.append(step)", "        return self", "", "    def __call__(self, x):",
      "        for step in self.steps:", "            x = step(x)", "        return x"], moving("{name}().add(torch.clone).add(lambda t: t.to({device}))({x})")),
    (["class NAMEMove:", "    def __init__(self, device):", "        self.device = device", "", "    def __call__(self, x):", "        return x.to(self.device)", "", "", "class NAME:", "    def __init__(self, move):",
      "        self.move = move", "", "    def run(self, x):", "        return self.move(x)"], moving("{name}({name}Move({device})).run({x})")),
    (["class NAME:", "    def __init__(self, steps):", "        self.steps = steps", "", "    def __call__(self, x):", "        return reduce(lambda t, step: step(t), self.steps, x)"],
     moving("{name}([torch.clone, lambda t: t.to({device})])({x})")),
    (["class NAME:", "    def __init__(self, device, on_step=None):", "        self.device = device", "        self.on_step = on_step", "", "    def run(self, x):", "        x = x.to(self.device)",
      "        if self.on_step is not None:", "            self.on_step(x)", "        return x"], moving("{name}({device}, on_step=print).run({x})")),
    # Settings and objects in objects
    (["class NAMEConfig:", "    device = \"cpu\"", "    size = 4", "", "", "class NAME:", "    def __init__(self, config):", "        self.config = config", "", "    def put(self, x):",
      "        return x.to(self.config.device)"], stepping(["{object}_config = {name}Config()", "{object}_config.device = {device}", "{object} = {name}({object}_config)"], "{object}.put({x})")),
    (["@dataclass", "class NAMEConfig:", "    device: str = \"cpu\"", "    size: int = 4", "", "", "class NAME:", "    def __init__(self, config):", "        self.device = torch.device(config.device)", "        self.size = config.size", "",
      "    def zeros(self):", "        return torch.zeros(self.size, device=self.device)"], making("{name}({name}Config(device={device})).zeros()", "vec")),
    (["class NAME:", "    def __init__(self, **config):", "        self.device = config.get(\"device\", \"cpu\")", "        self.size = config.pop(\"size\", 4)", "", "    def zeros(self):",
      "        return torch.zeros(self.size, device=self.device)"], making("{name}(device={device}).zeros()", "vec")),
    (["class NAME:", "    def __init__(self, device):", "        self.inner = SimpleNamespace(device=device)", "", "    @property", "    def device(self):", "        return self.inner.device", "", "    def put(self, x):",
      "        return x.to(self.device)"], moving("{name}({device}).put({x})")),
    (["class NAME:", "    def __init__(self, device):", "        self.device = device", "        self._state = None", "", "    @property", "    def state(self):", "        if self._state is None:",
      "            self._state = torch.zeros(4, device=self.device)", "        return self._state"], holder("{name}({device})", "state", assignable=False)),
    (["class NAME:", "    def __init__(self, device):", "        self.tensors = {\"state\": torch.zeros(4, device=device)}", "", "    def __getattr__(self, name):", "        return self.tensors[name]"],
     holder("{name}({device})", "state", assignable=False)),
    (["class NAME:", "    def __init__(self):", "        self.state = torch.zeros(4)", "        self.other = torch.ones(4)", "", "    def to(self, device):", "        for key, value in vars(self).items():",
      "            if torch.is_tensor(value):", "                setattr(self, key, value.to(device))", "        return self"], holder("{name}().to({device})", "state")),
    # Arguments that are handed on
    (["def NAME_inner(x, *, device, non_blocking=False):", "    return x.to(device, non_blocking=non_blocking)", "", "", "def NAME(*args, **kwargs):", "    return NAME_inner(*args, **kwargs)"], moving("{name}({x}, device={device})")),
    (["def NAME(x, *args, **kwargs):", "    kwargs.setdefault(\"device\", \"cpu\")", "    return x.to(*args, **kwargs)"], moving("{name}({x}, device={device})")),
    (["def NAME(x, **kwargs):", "    device = kwargs.pop(\"device\", None)", "    if device is not None:", "        x = x.to(device)", "    return x"], moving("{name}({x}, device={device})")),
    (["class NAMEBase:", "    def __init__(self, device=\"cpu\", **others):", "        self.device = device", "        self.others = others", "", "", "class NAME(NAMEBase):", "    def __init__(self, name, *args, **kwargs):",
      "        super().__init__(*args, **kwargs)", "        self.name = name", "", "    def put(self, x):", "        return x.to(self.device)"], moving("{name}(\"some\", device={device}).put({x})")),
    (["def NAME(function):", "    @wraps(function)", "    def inner(*args, **kwargs):", "        with torch.no_grad():", "            return function(*args, **kwargs)", "", "    return inner", "", "",
      "@NAME", "def NAME_move(x, device):", "    return x.to(device)"], moving("{name}_move({x}, {device})")),
    (["def NAME(device):", "    options = {\"device\": device, \"dtype\": torch.float32}", "    return torch.zeros(4, **options)"], making("{name}({device})", "vec")),
    # Round trips
    (["def NAME(x):", "    return torch.from_numpy(x.detach().cpu().numpy() * 2).to(x.device)"], folding("{name}({})", "vec", 1)),
    (["def NAME(x, y):", "    if x.device != y.device:", "        y = y.to(x.device)", "    return x + y"], folding("{name}({}, {})", "vec", 2)),
    (["def NAME(x, y):", "    x, y = (t.to(x.device) for t in (x, y))", "    return x * y"], folding("{name}({}, {})", "vec", 2)),
    # Modules in objects
    (["class NAME:", "    def __init__(self, module):", "        self.module = module", "", "    @property", "    def device(self):", "        return next(self.module.parameters()).device", "", "    def run(self, *inputs):",
      "        return self.module(*(t.to(self.device) for t in inputs))"], belonging("{name}({module}).run({given})")),
    (["def NAME(module, *inputs):", "    device = module.weight.device", "    return module(*[t.to(device) for t in inputs])"], belonging("{name}({module}, {given})")),
    (["class NAME:", "    def __init__(self, module, device):", "        self.device = device", "        self.module = module", "        self.module.to(device)", "", "    def __call__(self, *inputs):", "        inputs = self.prepare(inputs)",
      "        return self.module(*inputs)", "", "    def prepare(self, inputs):", "        return [t.to(self.device) for t in inputs]"], running("{name}({module}, {device})({given})")),
    (["class NAME:", "    def __init__(self, **modules):", "        self.modules = modules", "", "    def to(self, device):", "        for module in self.modules.values():", "            module.to(device)", "        self.device = device",
      "        return self", "", "    def run(self, *inputs):", "        return self.modules[\"net\"](*(t.to(self.device) for t in inputs))"], running("{name}(net={module}).to({device}).run({given})")),
]  # fmt: skip
