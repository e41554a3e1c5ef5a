"""Expressions. The kinds of tensors have fixed shapes, so that only devices can go wrong:

    vec (4,)   mat (4, 4)   scal ()   idx (4,) of indices   mask (4,) of booleans
"""

import re

from scope import BEST, CPU, CUDA, SECOND

TENSORS = ("vec", "mat", "scal", "idx", "mask")

# `{vec}` stands for an operand at the place of the result, `{scal~}` for one that may also be on the CPU.
OPERATIONS = {
    "vec": [
        "{vec} + {vec}", "{vec} - {vec}", "{vec} * {scal~}", "{vec} * 2", "{mat} @ {vec}", "-{vec}", "{scal~} - {vec}", "{vec} / {vec}",
        "{vec}[{idx~}]", "{mat}[0]", "{mat}[:, 1]", "{mat}[1, :]", "{mat}.sum(0)", "{mat}.mean(dim=1)", "{mat}.max(dim=1).values",
        "torch.relu({vec})", "F.softmax({vec}, dim=0)", "{vec}.clone()", "{vec}.detach()", "{vec}.clamp(min=0.0)", "{vec}.float()",
        "torch.where({mask}, {vec}, {vec})", "torch.where({mask}, {vec}, {scal~})", "{vec}.masked_fill({mask}, 0.0)",
        "torch.cat([{vec}[:2], {vec}[2:]])", "torch.cat(({vec}[:1], {vec}[1:]), dim=0)", "torch.stack([{vec}, {vec}]).mean(0)",
        "torch.maximum({vec}, {vec})", "torch.matmul({mat}, {vec})", "torch.mv({mat}, {vec})", "torch.gather({vec}, 0, {idx})",
        "{vec}.index_select(0, {idx})", "torch.einsum(\"ij,j->i\", {mat}, {vec})", "F.linear({vec}, {mat})", "F.linear({vec}, {mat}, {vec})",
        "torch.zeros_like({vec})", "{vec}.new_ones(4)", "torch.full_like({vec}, 2.0)", "torch.lerp({vec}, {vec}, 0.5)", "{mask}.float()",
        "torch.addmv({vec}, {mat}, {vec})", "{vec}.scatter_add(0, {idx}, {vec})", "torch.add({vec}, {vec}, alpha=2)", "{idx}.float()",
        "{vec}.view(2, 2).flatten()", "{vec}.reshape(-1)", "F.layer_norm({vec}, (4,), {vec}, {vec})", "torch.cumsum({vec}, 0)",
        "{vec}.unsqueeze(0).squeeze(0)", "{mat}.diagonal()", "torch.chunk({mat}, 4)[0].squeeze(0)", "{vec}.expand(4)", "{vec} ** {scal~}",
        "{mat}.unbind(0)[2]", "F.dropout({vec}, 0.1)", "{vec}.type(torch.float32)", "{vec}.requires_grad_(False)", "{vec}.flip(0)",
        "torch.addcmul({vec}, {vec}, {vec})", "{vec}.T", "{vec}.data", "torch.minimum({vec}, {vec}).abs()", "torch.clamp({vec}, max={scal~})",
        "torch.where({mask}, {vec}, 0.0)", "torch.where({mask}, 1.0, {vec})", "{vec}.where({mask}, {vec})", "{vec}.scatter(0, {idx}, {vec})",
        "{vec}.scatter(0, {idx}, 1.0)", "{vec}.index_fill(0, {idx}, 0.0)", "{vec}.index_copy(0, {idx}, {vec})", "{vec}.index_add(0, {idx}, {vec})",
        "{vec}.masked_scatter({mask}, {vec})", "torch.take({vec}, {idx})", "torch.take_along_dim({vec}, {idx}, 0)", "{vec}.index_put(({idx},), {vec})",
        "torch.index_put({vec}, ({idx},), {scal~})", "torch.tensordot({mat}, {vec}, dims=1)", "F.normalize({vec}, dim=0)", "F.pad({vec}, (1, 1))[1:-1]",
        "torch.roll({vec}, 1)", "torch.atan2({vec}, {vec})", "{mat}.split(2)[0][1]", "({vec} > 0).float()", "torch.sort({vec})[0]", "torch.topk({vec}, 4).values", "{vec}.add({vec})", "{vec}.mul({vec})",
    ],
    "mat": [
        "{mat} @ {mat}", "{mat} + {vec}", "{mat} * {scal~}", "torch.outer({vec}, {vec})", "torch.stack([{vec}, {vec}, {vec}, {vec}])", "{mat}.t()",
        "F.linear({mat}, {mat}, {vec})", "torch.addmm({vec}, {mat}, {mat})", "F.embedding({idx}, {mat})", "{mat}[{idx~}]", "{vec}.unsqueeze(0) * {mat}",
        "torch.cat([{mat}[:2], {mat}[2:]])", "{vec}.repeat(4, 1)", "{vec}.expand(4, 4)", "torch.where({mask}, {mat}, {vec})", "torch.diag({vec})",
        "torch.matmul({mat}, {mat})", "torch.mm({mat}, {mat}.T)", "F.softmax({mat}, dim=-1)", "torch.cdist({mat}, {mat})", "{mat}.masked_fill({mask}, 0.0)",
        "torch.bmm({mat}.unsqueeze(0), {mat}.unsqueeze(0)).squeeze(0)", "{mat}.transpose(0, 1).contiguous()", "torch.tril({mat})", "F.one_hot({idx}, 4).float()",
        "torch.where({mask}, {mat}, 0.0)", "{mat}.index_copy(0, {idx}, {mat})", "torch.meshgrid({vec}, {vec}, indexing=\"ij\")[0]",
        "torch.column_stack(({vec}, {vec}, {vec}, {vec}))", "{mat}.index_put(({idx},), {vec})", "torch.tensordot({mat}, {mat}, dims=1)",
        "torch.ones_like({mat})", "torch.einsum(\"ij,jk->ik\", {mat}, {mat})", "{mat}.index_select(0, {idx})", "torch.vstack([{vec}, {vec}, {mat}[:2]])",
    ],
    "scal": [
        "{vec}.sum()", "{vec}.mean()", "{vec}[0]", "{mat}.norm()", "torch.dot({vec}, {vec})", "F.mse_loss({vec}, {vec})", "{scal~} + {scal}", "{scal} * 2",
        "F.cross_entropy({mat}, {idx})", "F.cross_entropy({mat}, {idx}, weight=({vec}).detach())", "{vec} @ {vec}", "F.l1_loss({mat}, {mat})", "{scal}.clone()",
        "F.nll_loss(F.log_softmax({mat}, dim=1), {idx})", "F.binary_cross_entropy_with_logits({vec}, {vec})", "{vec}.max()", "torch.sum({mat})",
        "F.smooth_l1_loss({vec}, {vec})", "{mat}[1, 2]", "F.kl_div({vec}, {vec}, reduction=\"sum\")", "{scal}.exp()", "{mat}.trace()", "torch.mean({vec} * {vec})",
    ],
    "idx": [
        "{vec}.argsort()", "{mat}.argmax(dim=1)", "{idx}.flip(0)", "{idx}[{idx~}]", "torch.argsort({vec})", "{mask}.long()", "{idx}.clone()",
        "torch.zeros_like({idx})", "{vec}.long() * 0", "torch.topk({vec}, 4).indices", "torch.max({mat}, 1)[1]", "torch.where({mask}, {idx}, {idx})",
    ],
    "mask": [
        "{vec} > 0", "{vec} > {scal~}", "{vec} <= {vec}", "{mask} & {mask}", "~{mask}", "{idx} == {idx}", "torch.isfinite({vec})", "{mask} | {mask}",
        "torch.ones_like({mask})", "{vec}.bool()", "torch.logical_and({mask}, {mask})", "{idx} != 0", "{mask}.clone()", "torch.eq({vec}, {vec})",
    ],
}  # fmt: skip

FACTORIES = {
    "vec": ["torch.zeros(4{})", "torch.ones(4{})", "torch.randn(4{})", "torch.rand(4{})", "torch.full((4,), 0.5{})", "torch.tensor([1.0, 2.0, 3.0, 4.0]{})",
            "torch.arange(4.0{})", "torch.linspace(0, 1, 4{})", "torch.empty(4{})", "torch.as_tensor([0.0, 1.0, 2.0, 3.0]{})"],
    "mat": ["torch.zeros(4, 4{})", "torch.randn(4, 4{})", "torch.eye(4{})", "torch.ones((4, 4){})", "torch.rand(4, 4{})", "torch.randn(size=(4, 4){})"],
    "scal": ["torch.tensor(1.0{})", "torch.zeros((){})", "torch.tensor(0.5{})", "torch.ones([]{})"],
    "idx": ["torch.arange(4{})", "torch.tensor([3, 2, 1, 0]{})", "torch.randint(0, 4, (4,){})", "torch.randperm(4{})", "torch.zeros(4, dtype=torch.long{})"],
    "mask": ["torch.ones(4, dtype=torch.bool{})", "torch.tensor([True, False, True, False]{})", "torch.zeros(4, dtype=torch.bool{})"],
}  # fmt: skip

LIKE = {
    "vec": ["torch.zeros_like({})", "{}.new_zeros(4)", "torch.randn_like({})", "{}.clone()", "torch.empty_like({})", "{}.new_tensor([1.0, 2.0, 3.0, 4.0])"],
    "mat": ["torch.zeros_like({})", "{}.new_zeros(4, 4)", "torch.rand_like({})", "{}.clone()"],
    "scal": ["torch.zeros_like({})", "{}.clone()"],
    "idx": ["torch.zeros_like({})", "{}.clone()", "{}.new_zeros(4)"],
    "mask": ["torch.ones_like({})", "~{}"],
}


class Expressions:
    """How `Program` writes expressions; mixed into it."""

    def device(self, where):
        """An expression for a device at this place, or None if nothing here names it."""
        options = [v.text for v in self.visible("dev") if self.same(v.where, where)] * 3
        options += [f"{v.text}.device" for kind in TENSORS for v in self.visible(kind) if self.same(v.where, where)][:4]
        for v in self.visible("module"):
            if self.same(v.where, where) and v.more.parameters:
                options += [f"next({v.text}.parameters()).device", f"{v.text}.{v.more.parameters[0]}.device"]
        if self.is_all(where, "cpu"):
            options += ["\"cpu\"", "torch.device(\"cpu\")"]
        elif self.is_all(where, "cuda:0"):
            options += ["\"cuda\"", "\"cuda:0\"", "torch.device(\"cuda\")", "torch.device(\"cuda:0\")"] * 2 + ["0"]
        elif self.same(where, BEST):
            options += ["\"cuda\" if torch.cuda.is_available() else \"cpu\"", "torch.device(\"cuda\" if torch.cuda.is_available() else \"cpu\")"]
        elif self.is_all(where, "cuda:1"):
            options += ["\"cuda:1\"", "torch.device(\"cuda\", 1)"]
        return self.choose(options) if options else None

    def make(self, kind, where):
        """An expression that makes a tensor there, not from other tensors."""
        like = [v for v in self.visible(kind) if self.same(v.where, where)]
        if like and self.chance(0.25):
            return self.choose(LIKE[kind]).format(self.choose(like).text)
        factory = self.choose(FACTORIES[kind])
        implied = self.same(where, self.default)
        if (implied and self.chance(0.8)) or self.mistake():
            if kind == "vec" and self.same(self.default, CPU) and self.chance(0.1):
                return "torch.from_numpy(np.ones(4, dtype=np.float32))"
            return factory.format("")
        others = [v for k in TENSORS for v in self.visible(k) if self.same(v.where, where)]
        if others and self.chance(0.15):
            other = self.choose(others)
            same_type = kind == other.kind or {kind, other.kind} <= {"vec", "mat", "scal"}
            way = self.choose([".to({})", ".type_as({})"] if same_type else [".to({}.device)"])
            return factory.format("") + way.format(other.text)
        if self.is_all(where, "cuda:0") and self.chance(0.3):
            return factory.format("") + self.choose([".cuda()", ".cuda()", ".to(\"cuda\")", ".cuda(0)"])
        device = self.device(where)
        if device is None:
            return factory.format("")
        if self.chance(0.6) and not factory.startswith("torch.as"):
            return factory.format(f", device={device}")
        return factory.format("") + f".to({device})"

    def operand(self, kind, where):
        """A variable of this kind there, or something that is made on the spot; rarely one elsewhere."""
        candidates = self.visible(kind)
        fitting = [v for v in candidates if self.same(v.where, where)]
        if self.mistake():
            others = [v for v in candidates if v not in fitting]
            return self.choose(others).text if others else self.make(kind, self.place())
        if fitting and not self.chance(0.08):
            return self.choose(fitting[-8:]).text
        return self.make(kind, where)

    def expression(self, kind, where, depth=1):
        """An expression of this kind whose value is there."""
        called = self.call(kind, where) if self.chance(0.3) else None
        if called is not None:
            return called

        def fill(match):
            name, loose = match.group(1), match.group(2)
            place = CPU if loose and self.chance(0.3) else where
            if depth > 0 and self.chance(0.15):
                return f"({self.expression(name, place, depth - 1)})"
            found = self.operand(name, place)
            return found if re.fullmatch(r"[\w.\[\]\"']+|torch\.\w+\([^()]*\)", found) else f"({found})"

        return re.sub(r"\{(\w+)(~?)\}", fill, self.choose(OPERATIONS[kind]))

    def call(self, kind, where):
        """A call of one of the program's own functions or modules, or a PyTorch module, if one fits."""
        options = []
        for v in self.visible("module"):
            if v.more.result == kind and (self.same(v.where, where) or self.chance(self.mistakes / 4)):
                options.append((v.text, v.more.takes))
        for v in self.variables:
            if v.kind == "function" and v.more.result == kind and v.more is not self.inside:
                options += [(v.text, v.more.takes)] * 2
        if not options:
            return None
        name, takes = self.choose(options)
        return f"{name}({self.arguments(takes, where)})"

    def arguments(self, takes, where):
        given = []
        for parameter in takes:
            kind, _, default = parameter.partition("=")
            if kind == "dev":
                device = self.device(where)
                if device is None or (default and self.mistake()):
                    continue
                given.append(f"device={device}" if default or self.chance(0.3) else device)
            else:
                given.append(self.operand(kind, where))
        return ", ".join(given)

    def place(self):
        """Somewhere that something could be put: mostly where something already is."""
        found = [v.where for k in (*TENSORS, "dev", "module") for v in self.visible(k)]
        options = found[-10:] * 2 + [v.where for v in self.visible("dev")] * 4
        if not options:
            return CPU if self.chance(0.7) or "P" in self.places() else self.choose([CUDA, BEST, SECOND])
        return self.choose(options)

    def places(self):
        return {p for v in self.variables for p in v.where.values()}
