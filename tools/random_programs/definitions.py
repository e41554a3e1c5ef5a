"""What programs define: functions and modules with random bodies, and helpers of well-known shapes."""

import re
from dataclasses import dataclass, field

from applications import APPLICATIONS
from helpers import HELPERS
from idioms import IDIOMS
from scope import CPU, Var, everywhere
from structures import STRUCTURES

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
        plain = [v for v in attributes if re.fullmatch(r"self\.plain\d*", v.text)]
        if plain and self.chance(0.15):
            v = self.choose(plain)
            self.emit("def _apply(self, fn, *args, **kwargs):")
            self.emit("    super()._apply(fn, *args, **kwargs)")
            self.emit(f"    {v.text} = fn({v.text})")
            self.emit("    return self")
            self.emit("")
            v.where = dict(ARGUMENT)
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
        way = self.choose(["parameter", "buffer", "buffer", "plain", "plain", "module", "module", "list", "plain list", "parameters", "dict", "named", "plain tensors"])
        if way == "parameters":
            name = self.fresh("gains")
            if self.chance(0.5):
                self.emit(f"self.{name} = nn.ParameterList([nn.Parameter(torch.ones(4)) for _ in range(2)])")
                return [Var(f"self.{name}[{i}]", "vec", where, assignable=False) for i in range(2)]
            self.emit(f"self.{name} = nn.ParameterDict({{\"a\": nn.Parameter(torch.ones(4))}})")
            return [Var(f"self.{name}[\"a\"]", "vec", where, assignable=False)]
        if way == "named":
            name = self.fresh("gain")
            self.emit(self.choose([f"self.register_parameter(\"{name}\", nn.Parameter(torch.ones(4)))", f"setattr(self, \"{name}\", nn.Parameter(torch.ones(4), requires_grad=False))"]))
            return [Var(f"self.{name}", "vec", where, assignable=False)]
        if way == "plain tensors":
            # Where the module is, its author thinks now and then.
            name = self.fresh("plain")
            self.emit(f"self.{name} = " + self.choose(["[torch.ones(4), torch.zeros(4)]", "(torch.ones(4), torch.zeros(4))"]))
            return [Var(f"self.{name}[{i}]", "vec", where if self.chance(self.mistakes * 3) else dict(CPU), assignable=False) for i in range(2)]
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
        if way == "dict":
            name = self.fresh("layers")
            self.emit(f"self.{name} = nn.ModuleDict({{\"a\": {constructor}}})")
            return [Var(f"self.{name}[\"a\"]", "module", where, info, assignable=False)]
        name = self.fresh("layer")
        if way == "module":
            self.emit(self.choose([f"self.{name} = {constructor}"] * 3 + [f"self.add_module(\"{name}\", {constructor})"]))
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
        lines, call = self.choose(HELPERS + IDIOMS + APPLICATIONS + STRUCTURES)
        name = self.fresh("aid")
        for line in lines:
            self.emit(line.replace("NAME", name))
        self.emit("")
        self.emit("")
        self.variables.append(Var(name, "template", everywhere("any"), lambda program: call(program, name)))
