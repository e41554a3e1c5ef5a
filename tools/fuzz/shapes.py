"""Shapes of syntax: what an expression or statements may be put into, and whole programs of one shape many times over."""

import ast


def name(text, ctx=None):
    return ast.Name(id=text, ctx=ctx or ast.Load())


def expression(text):
    """The tree of an expression."""
    return ast.parse(text, mode="eval").body


def filled(text, **parts):
    """The tree of an expression with trees in place of the names in capitals."""
    return Filler(parts).visit(expression(text))


class Filler(ast.NodeTransformer):
    def __init__(self, parts):
        self.parts = parts

    def visit_Name(self, node):
        return self.parts.get(node.id, node)


# `E` stands for the expression that is there. The first group of each list keeps devices apart in many ways, the rest is what Python allows.
AROUND = """
E if torch.cuda.is_available() else y | y if flag else E | E if E2 else None | E or y | E and y | not E | E.to(device) | E.cuda() | E.cpu()
E.to("cuda:1", non_blocking=True) | torch.stack([E, y]) | E + y | y @ E | E[0] | E["key"] | E.device | E.device.type == "cuda" | f(E) | f(x=E)
nn.Sequential(E, nn.Linear(2, 2)) | [E] | {"key": E} | E.shape | E.item() | self.net(E) | torch.zeros(2, device=E) | getattr(E, "cuda")()
(n := E) | lambda: E | lambda a, /, b=1, *c, d=2, **e: E | (lambda q=E: q)() | [E for i in range(3)] | {E for i in y if i} | {k: E for k, v in y.items()}
(E for a in y for b in a if b if a) | [E async for a in y] | (await E) | (yield E) | (yield from E) | f(*E) | f(**E) | f(*E, **y) | [*E, *y]
{**E, "a": 1} | {*E} | (E,) | (E, *y) | () if E else [] | E[1:2, ..., ::3] | E[:, None] | E[*y] | E < y < E2 != 3 | E is not None | E not in y
-E | ~E | +E | E ** -y | E // 2 % 3 << 1 | E @ y @ y | f"{E}" | f"{E!r:>{width}}" | f"a{E=}b" | "a" "b" f"{E}" | print(E, end="") | E.a.b.c.d
E()()()() | [[[[E]]]] | (((E))) | {1: {2: {3: E}}} | E if (E2 := y) else E2 | [i for i in [j for j in [k for k in E]]] | type(E)(E) | ... if E else ...
0xFFFF_FFFF_FFFF_FFFF_FFFF + E | 1e400 * E | 1j * E | "\\N{BULLET}\\ud800" + E | b"\\xff" + E | "\\x00" * E | E == "cuda" != "cpu" | __import__("torch").cuda
"""


def make_expression(text):
    # A second use of the same tree must be another name, or it would double at each step.
    return lambda rng, inner: filled(text, E=inner, E2=name("other"))


EXPRESSIONS = [make_expression(part.strip()) for line in AROUND.strip().splitlines() for part in line.split(" | ")]

COMPOUND = [
    "if torch.cuda.is_available():\n    BODY",
    "if flag:\n    pass\nelse:\n    BODY",
    "if a:\n    pass\nelif b:\n    BODY\nelif c:\n    x = x.cuda()",
    "for i in range(3):\n    BODY",
    "for a, *b in y:\n    BODY\nelse:\n    pass",
    "while flag:\n    BODY\nelse:\n    x = x.cpu()",
    "while True:\n    BODY\n    break",
    "with torch.no_grad():\n    BODY",
    "with torch.device('cuda') as d, open(p) as (f, g):\n    BODY",
    "with (a as b, c as d.e, f as g[0],):\n    BODY",
    "try:\n    BODY\nexcept RuntimeError as e:\n    x = x.cpu()\nexcept (A, B):\n    raise\nelse:\n    pass\nfinally:\n    pass",
    "try:\n    pass\nexcept Exception:\n    pass\nfinally:\n    BODY",
    "def f(a, /, b: int = 1, *args: int, c=2, **kwargs) -> 'T':\n    BODY",
    "@torch.no_grad()\n@a.b[c](d := 1)\ndef f(x):\n    BODY",
    "async def f(x, *, y=1):\n    BODY",
    "async def f():\n    async with a as b, c:\n        BODY",
    "async def f():\n    async for a in b:\n        BODY\n    else:\n        await x",
    "class C(nn.Module, metaclass=M, **k):\n    BODY",
    "class C:\n    def __init__(self):\n        BODY",
    "class C(nn.Module):\n    def forward(self, x):\n        BODY",
    "@dataclass\nclass C:\n    x: int = 1\n    BODY",
    "match x:\n    case {'a': [1, *_], **rest} if rest:\n        BODY\n    case C(a, b=D(1 | 2 as n)) | None:\n        pass\n    case -1 + 2j | 'a' | [a, (b, c)]:\n        pass\n    case _:\n        pass",
    "match x, y:\n    case (torch.device(), *others):\n        BODY",
    "if __name__ == '__main__':\n    BODY",
    "def g():\n    nonlocal_ = 1\n    def h():\n        nonlocal nonlocal_\n        BODY\n    return h",
    "def f():\n    global x\n    BODY",
    "try:\n    pass\nexcept* ValueError as group:\n    BODY",
]


def make_statement(text):
    def wrap(rng, statements):
        tree = ast.parse(text)
        for node in ast.walk(tree):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list):
                    at = [i for i, s in enumerate(block) if isinstance(s, ast.Expr) and getattr(s.value, "id", "") == "BODY"]
                    for i in at:
                        block[i : i + 1] = statements or [ast.Pass()]
        return tree.body

    return wrap


def parses(text):
    """Not in every version of Python."""
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


STATEMENTS = [make_statement(text) for text in COMPOUND if parses(text)]

TARGETS = [
    lambda rng, text=text: ast.parse(f"{text} = 1").body[0].targets[0]
    for text in ("x.device", "x[0]", "x[1:2, ...]", "(a, *b)", "[a, (b, c.d), *e[0]]", "self.net.weight.data", "x", "(a,)", "f(x).y", "[]")
]

# What many versions of Python do not know yet, as text.
NEWER = [
    "type Pair[T: (int, str), *Ts, **P] = tuple[T, *Ts]",
    "def place[T: torch.Tensor](x: T, device: str = 'cuda') -> T:\n    return x.to(device)",
    "class Box[T = int](nn.Module):\n    def forward(self, x: T) -> T:\n        return x.cuda()",
    "print(f\"{d[\"cuda\"]} {f\"{f\"{x.to(\"cuda\")}\"}\"} {\n    x  # a comment\n}\")",
    "print(f'{x!r:{'>'}{width}} {'\\n'.join(y)} {lambda x: 1:>10}')",
    "try:\n    x = x.cuda()\nexcept ValueError, RuntimeError:\n    pass",
    "t = t\"{x.cuda()} and {y!s:>10}\"",
    "match x:\n    case {'device': type, **match}: match = type(match); print(case := 1)",
    "x: int | None = (yield)\nwith (open(p) as f, torch.device('cuda'),): pass",
    "for x in *a, *b: x[*c] = *d, *e",
]


def around(rng, prefix, suffix, core, count):
    return prefix * count + core + suffix * count


def nested(rng, head, core, count):
    """Blocks within each other."""
    lines = [f"{' ' * depth}{head}" for depth in range(count)]
    return "\n".join([*lines, " " * count + core])


def text_of(rng):
    """A program of one shape many times over, or of syntax that is newer than this Python."""
    count = rng.choice((3, 20, 90, 190, rng.randint(1, 600), rng.randint(1, 2500)))
    start = "import torch\nfrom torch import nn\n\nx = torch.zeros(2)\ny = torch.ones(2).cuda()\n"
    heads = ("if x:", "for i in y:", "while x:", "with a as b:", "def f(x):", "class C:", "try:")
    pairs = (("(", ")"), ("[", "]"), ("f(", ")"), ("x[", "]"), ("not ", ""), ("-", ""), ("lambda: ", ""), ("{1: ", "}"), ("*", ""), ("await ", ""))
    match rng.randrange(11):
        case 0:
            body = f"z = {around(rng, *rng.choice(pairs), 'x', count)}"
        case 1:
            body = nested(rng, rng.choice(heads[:-1]), "x = x.cuda()", min(count, 99))
        case 2:
            names = [rng.choice(("x.cuda()", "y", "f(x)", "build().to('cuda')")) for _ in range(count)]
            branches = [f"elif name == {i}:\n    net = {value}" for i, value in enumerate(names)]
            body = "if name is None:\n    net = x\n" + "\n".join(branches) + "\nnet + y"
        case 3:
            body = "z = " + rng.choice((" + ", " or ", ", ", " if x else ", " < ", " @ ", ".", " and not ")).join(["x"] * count)
        case 4:
            body = "\n".join(f"if {rng.choice('abc')} > {i}: {rng.choice('xyz')} = {rng.choice('xyz')}.{rng.choice(('cuda', 'cpu'))}()" for i in range(min(count, 300)))
        case 5:
            body = "\n".join(f"def f{i}(x):\n    return f{i + rng.choice((-1, 1, 2))}(x).cuda()" for i in range(min(count, 400)))
        case 6:
            body = "class C(nn.Module):\n" + "\n".join(f"    def m{i}(self, x):\n        self.a{i} = self.a{i // 2} + x.cuda()" for i in range(min(count, 300)))
        case 7:
            body = "\n".join(f"x{i} = x{max(0, i - 1)}.{rng.choice(('cuda', 'cpu'))}() + y  # samedevice: ignore[SD20{i % 9}]" for i in range(min(count, 600)))
        case 8:
            body = f"z = {'1' * count * 3} + 0x{'f' * count} + {'1_' * count}0\ns = '{'x' * count * 20}'"
        case 9:
            body = "z = [" + ", ".join(rng.choice(("x", "x.cuda()", "{1: y}", "[y, x]", "*z", "lambda x: y")) for _ in range(count)) + "]\nz[0] + z[1]"
        case _:
            body = "\n".join(rng.choice(NEWER) for _ in range(rng.randint(1, 4)))
    return start + body + "\n"
