"""Reads data/hardware.txt: what PyTorch said of small programs on a machine with CUDA. The format is in its header."""

import ast
import dataclasses
import pathlib

MAKERS = {"tensor", "randn", "rand", "ones", "zeros", "empty", "randint", "arange", "full", "eye"}


@dataclasses.dataclass(frozen=True)
class Check:
    """One program and its verdict: `accepted`, `refused` (for a device) or `fails` (for something else)."""

    name: str
    verdict: str
    program: str


@dataclasses.dataclass(frozen=True)
class Tensor:
    """A tensor that a program makes: on the CPU or on CUDA, with dimensions or without."""

    cpu: bool
    zero_dim: bool


@dataclasses.dataclass(frozen=True)
class Observation:
    """A call of one operator with tensors on both devices, and whether it was accepted.

    `tensors` has an entry for each tensor argument: its position or keyword (a method's receiver is position 0; `(p, i)`
    for an element of a list) and where it was."""

    operator: str
    tensors: tuple
    accepted: bool


def read(path):
    """The checks of the file."""
    checks, lines = [], []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            lines.append(line[4:])
        elif line and not line.startswith("#"):
            name, verdict, *_ = line.split()
            checks.append((name, verdict, lines := []))
    return [Check(name, verdict, "\n".join(program)) for name, verdict, program in checks]


def observations(checks):
    """What the checks say about operators: of those that end with one call of one, with tensors on both devices."""
    for check in checks:
        if check.verdict != "fails" and (call := last_call(check.program)):
            name, found = call
            if {t.cpu for _, t in found} == {True, False}:
                yield Observation(name, tuple(found), check.verdict == "accepted")


class Unknown(Exception):
    """An expression that is not understood: the program says nothing about its operator."""


def last_call(program):
    """The operator that the last line calls, and the tensors it is given; None if there is more to the program."""
    try:
        return Reader().program(ast.parse(program).body)
    except Unknown:
        return None


class Reader:
    """Follows where the variables of a program are."""

    def __init__(self):
        self.known = {}
        self.default_is_cpu = True

    def program(self, body):
        """The call that ends these statements."""
        body = [s for s in body if not (isinstance(s, ast.Expr) and ast.unparse(s).startswith("print("))]
        if len(body) > 1 and isinstance(body[-2], ast.Expr) and ast.unparse(body[-1]).startswith("result = "):
            # `x.add_(y); result = x`
            body.pop()
        if len(body) > 1 and isinstance(body[-2], ast.FunctionDef):
            # `def main(): …` and its call
            return self.program(body[-2].body)
        *before, last = body
        for statement in before:
            self.statement(statement)
        if not isinstance(last, (ast.Assign, ast.Expr)) or not isinstance(last.value, ast.Call):
            raise Unknown
        return self.call(last.value)

    def statement(self, statement):
        if isinstance(statement, ast.With) and ast.unparse(statement.items[0]).startswith("torch.device("):
            self.default_is_cpu = "cpu" in ast.unparse(statement.items[0])
            for inner in statement.body:
                self.statement(inner)
            self.default_is_cpu = True
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            self.known[statement.targets[0].id] = self.value(statement.value)
        else:
            raise Unknown

    def value(self, node):
        """A tensor, a list of them, a device as text, or None for numbers and their like."""
        if isinstance(node, ast.Name):
            return self.known.get(node.id)
        if isinstance(node, (ast.List, ast.Tuple)):
            return [self.value(n) for n in node.elts]
        if isinstance(node, ast.Constant):
            return node.value if isinstance(node.value, str) else None
        if isinstance(node, ast.Compare):
            return self.value(node.left)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            return self.made(node)
        if isinstance(node, (ast.UnaryOp, ast.Attribute)):
            return None
        raise Unknown

    def made(self, node):
        """The tensor or device that a call makes."""
        name = ast.unparse(node.func)
        if name == "torch.device":
            return node.args[0].value
        if name.startswith("torch.") and name[6:] in MAKERS:
            device = next((self.value(k.value) for k in node.keywords if k.arg == "device"), None)
            cpu = self.default_is_cpu if device is None else device == "cpu"
            sized = name != "torch.tensor" or isinstance(node.args[0], ast.List)
            return Tensor(cpu, not sized or ast.unparse(node.args[-1]) == "()")
        receiver = self.value(node.func.value) if not name.startswith("torch.") else None
        if isinstance(receiver, Tensor) and node.func.attr in ("cpu", "cuda"):
            return Tensor(node.func.attr == "cpu", receiver.zero_dim)
        if isinstance(receiver, Tensor) and node.func.attr == "sigmoid":
            return receiver
        raise Unknown

    def call(self, node):
        """The operator's name and the tensors it is given."""
        name = ast.unparse(node.func)
        given = [(i, self.value(a)) for i, a in enumerate(node.args)]
        if not name.startswith("torch."):
            if not isinstance(node.func, ast.Attribute):
                raise Unknown
            receiver = self.value(node.func.value)
            if not isinstance(receiver, Tensor):
                raise Unknown
            name = f"torch.Tensor.{node.func.attr}"
            given = [(0, receiver), *((i + 1, v) for i, v in given)]
        given += [(k.arg, self.value(k.value)) for k in node.keywords]
        found = []
        for place, value in given:
            if isinstance(value, Tensor):
                found.append((place, value))
            elif isinstance(value, list):
                found += [((place, i), v) for i, v in enumerate(value) if isinstance(v, Tensor)]
        return name, found


class Facts:
    """What is known of each argument of each operator, by the observations.

    A cell is one way in which an argument is apart from all others: on which side it is, and whether it, or everything,
    is zero-dimensional. Where programs disagree (a kernel may ask for the dtype as well) the cell says nothing."""

    # The cells: with dimensions; zero-dimensional among tensors with dimensions; all of them zero-dimensional.
    SIZED, SINGLE, ALL = "sized", "single", "all"

    def __init__(self, checks):
        self.cells, self.out_refused = {}, set()
        for seen in observations(checks):
            written = any(p == "out" for p, _ in seen.tensors)
            for place, tensor in seen.tensors:
                others = [t for p, t in seen.tensors if p != place]
                if any(t.cpu == tensor.cpu for t in others):
                    continue
                if written:
                    self.out_refused |= {seen.operator} if place == "out" and not seen.accepted else set()
                    continue
                sized = any(not t.zero_dim for t in others)
                if seen.accepted and not tensor.zero_dim and not sized:
                    # It is the others that may be elsewhere.
                    continue
                cell = self.SIZED if not tensor.zero_dim else self.SINGLE if sized else self.ALL
                argument = place[0] if isinstance(place, tuple) else place
                key = (seen.operator, argument, "cpu" if tensor.cpu else "cuda", cell)
                self.cells.setdefault(key, set()).add(seen.accepted)

    def of(self, operators, places, side):
        """The cells of the argument that these operators have at one of these places: cell to True (accepted) or False."""
        found = {}
        for cell in (self.SIZED, self.SINGLE, self.ALL):
            said = set().union(*(self.cells.get((o, p, side, cell), set()) for o in operators for p in places))
            if len(said) == 1:
                found[cell] = said.pop()
            elif said:
                found[cell] = None
        return found

    def letter(self, before, found):
        """The letter of the table for an argument that may be elsewhere as `before` says and as these cells say."""
        known = dict(zip((self.SIZED, self.SINGLE, self.ALL), MEANINGS[before]))
        known.update(found)
        if self.ALL in found and found[self.ALL] is False and self.SINGLE not in found:
            # Among zero-dimensional tensors every kernel is at its most lenient.
            known[self.SINGLE] = False
        if known[self.SINGLE] is False and found.get(self.SINGLE) is False and self.ALL not in found and known[self.ALL]:
            known[self.ALL] = None
        sized, single, both = (known[c] for c in (self.SIZED, self.SINGLE, self.ALL))
        if sized:
            return "y" if single is not False and both is not False else "?"
        if sized is None and single is not False:
            return "?"
        return {True: "z" if both is not False else "?", False: "n" if both is False else "a", None: "m"}[single]


# What a letter says of the three cells: accepted, refused, not known.
MEANINGS = {
    "n": (False, False, False),
    "y": (True, True, True),
    "z": (False, True, True),
    "a": (False, False, True),
    "m": (False, None, None),
    "?": (None, None, None),
}
