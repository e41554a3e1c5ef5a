"""Statements: assignments, moves, branches, loops, containers and what else programs do with tensors."""

from definitions import MODULES
from expressions import TENSORS
from scope import BEST, CPU, CUDA, SECOND, everywhere

ARGUMENT = everywhere("P")


class Statements:
    """How `Program` writes statements; mixed into it."""

    def block(self, count):
        """The body of something, at least `pass`."""
        self.depth += 1
        length = len(self.lines)
        for _ in range(count):
            self.statement()
        if len(self.lines) == length:
            self.emit("pass")
        self.depth -= 1

    def statement(self):
        if not self.active:
            return
        weights = SIMPLE if self.depth > 3 or self.bodies > 5 else ALL
        names, chances = zip(*weights.items(), strict=True)
        for _ in range(8):
            if getattr(self, "do_" + self.random.choices(names, chances)[0])():
                return
        self.do_new()

    def kind(self):
        return self.random.choices(TENSORS, (10, 5, 3, 2, 2))[0]

    def some(self, *kinds):
        found = [v for k in kinds or TENSORS for v in self.visible(k) if v.assignable]
        return self.choose(found) if found else None

    # Assignments

    def do_new(self):
        kind, where = self.kind(), self.place()
        text = self.expression(kind, where)
        self.emit(f"{(name := self.fresh(kind[0]))} = {text}")
        self.declare(name, kind, where)
        return True

    def do_make(self):
        kind, where = self.kind(), self.place()
        text = self.make(kind, where)
        self.emit(f"{(name := self.fresh(kind[0]))} = {text}")
        self.declare(name, kind, where)
        return True

    def do_rebind(self):
        if not (v := self.some()):
            return False
        where = v.where if self.chance(0.7) else self.place()
        self.emit(f"{v.text} = {self.expression(v.kind, where)}")
        self.rebind(v, where)
        return True

    def do_alias(self):
        if not (v := self.some(*TENSORS, "dev")):
            return False
        self.emit(f"{(name := self.fresh('same'))} = {v.text}")
        self.declare(name, v.kind, v.where)
        return True

    def do_swap(self):
        if not (v := self.some()):
            return False
        others = [o for o in self.visible(v.kind) if o is not v and o.assignable]
        if not others:
            return False
        other = self.choose(others)
        self.emit(f"{v.text}, {other.text} = {other.text}, {v.text}")
        before = dict(v.where)
        self.rebind(v, other.where)
        self.rebind(other, before)
        return True

    def moved(self, v, where):
        """An expression that moves `v` there, or None."""
        options = []
        device = self.device(where)
        if device:
            options += [f"{v.text}.to({device})", f"{v.text}.to(device={device})", f"{v.text}.to({device}, non_blocking=True)"]
        if self.is_all(where, "cpu"):
            options += [f"{v.text}.cpu()"] * 2
        if self.is_all(where, "cuda:0"):
            options += [f"{v.text}.cuda()"] * 3
        for other in self.visible(v.kind):
            if other is not v and self.same(other.where, where):
                options += [f"{v.text}.to({other.text})", f"{v.text}.type_as({other.text})", f"{v.text}.to({other.text}.device)"]
        return self.choose(options) if options else None

    def do_move(self):
        v = self.some()
        where = self.place()
        text = v and self.moved(v, where)
        if not text:
            return False
        if self.chance(0.06):
            self.emit(text)
            return True
        if self.chance(0.6):
            self.emit(f"{v.text} = {text}")
            self.rebind(v, where)
        else:
            self.emit(f"{(name := self.fresh('moved'))} = {text}")
            self.declare(name, v.kind, where)
        return True

    def do_device(self):
        where = self.choose([BEST, BEST, CPU, SECOND, CUDA]) if not self.inside else ARGUMENT
        if where is CUDA and (0, False) in self.active:
            where = BEST
        if self.same(where, SECOND) and not self.same(SECOND, BEST):
            text = "\"cuda:1\" if torch.cuda.device_count() > 1 else (\"cuda\" if torch.cuda.is_available() else \"cpu\")"
        else:
            text = self.device(where)
        if not text or text.isdigit():
            return False
        self.emit(f"{(name := self.fresh('device'))} = {text}")
        self.declare(name, "dev", where)
        return True

    def do_inplace(self):
        if not (v := self.some("vec", "vec", "mat")):
            return False
        at, x = v.where, v.text
        options = [f"{x} += {self.operand(v.kind, at)}", f"{x}.add_({self.operand('vec', at)})", f"{x}.mul_({self.operand('vec', at)})",
                   f"{x} *= {self.operand('vec', at)}", f"{x}.copy_({self.operand(v.kind, self.place())})", f"{x}[0] = {self.operand('scal', self.place())}",
                   f"{x}[{self.operand('mask', at)}] = 0.0", f"{x}[{self.operand('idx', at)}] = {self.operand(v.kind, at)}",
                   f"{x}[{self.operand('idx', self.choose([at, CPU]))}] = 1.0", f"{x}.masked_fill_({self.operand('mask', at)}, 0.0)",
                   f"{x}[:2] = {self.operand(v.kind, self.place())}[:2]", f"{x}.index_add_(0, {self.operand('idx', at)}, {self.operand(v.kind, at)})",
                   f"{x}[:].scatter_(0, {self.operand('idx', at)}, 1.0)" if v.kind == "vec" else f"{x}.fill_(1.0)", f"{x}.index_fill_(0, {self.operand('idx', at)}, 0.0)",
                   f"{x}.index_copy_(0, {self.operand('idx', at)}, {self.operand(v.kind, at)})", f"{x}.index_put_(({self.operand('idx', at)},), {self.operand(v.kind, at)})",
                   f"{x}.zero_()", f"{x}[1:].add_({self.operand('scal', self.choose([at, CPU]))})", f"{x}.clamp_(min=0.0)", f"{x}.div_(2)",
                   f"{x} -= {self.operand('scal', self.choose([at, CPU]))}", f"{x}.sub_({self.expression('vec', at)})"]  # fmt: skip
        self.emit(self.choose(options))
        return True

    # Modules

    def do_module(self):
        where = self.place()
        constructor, info = self.choose([*MODULES, *self.definitions * 3])
        text = constructor
        if isinstance(constructor, str) and "{weight}" in text:
            text = text.replace("{weight}", self.operand("vec", where))
        elif not self.same(where, CPU) or self.chance(0.1):
            device = self.device(where)
            if self.is_all(where, "cuda:0") and self.chance(0.4):
                text += ".cuda()"
            elif device and not self.mistake():
                text += f".to({device})"
            else:
                where = CPU
        if not self.same(self.default, CPU) and "cuda()" not in text and ".to(" not in text:
            where = self.default
        self.emit(f"{(name := self.fresh('net'))} = {text}")
        self.declare(name, "module", where, info)
        return True

    def do_module_move(self):
        if not (v := self.some("module")):
            return False
        where = self.place()
        device = self.device(where)
        way = f"to({device})" if device else None
        if self.is_all(where, "cpu") and self.chance(0.5):
            way = "cpu()"
        if self.is_all(where, "cuda:0") and self.chance(0.5):
            way = "cuda()"
        if not way:
            return False
        self.emit(self.choose(["{0}.{1}", "{0} = {0}.{1}"]).format(v.text, way))
        self.rebind(v, where)
        return True

    def do_module_call(self):
        if not (v := self.some("module")):
            return False
        where = v.where
        self.emit(f"{(name := self.fresh('out'))} = {v.text}({self.arguments(v.more.takes, where)})")
        self.declare(name, v.more.result, where)
        return True

    def do_parameter(self):
        """A tensor that belongs to a module: it follows no later move, or does."""
        modules = [v for v in self.visible("module") if "weight" in v.more.parameters]
        if not modules or self.inside:
            return False
        v = self.choose(modules)
        name = self.fresh("weight")
        self.emit(f"{name} = {v.text}.weight{self.choose(['', '.detach()', '.data', '.clone()'])}")
        self.declare(name, "vec" if "LayerNorm" in v.more.name else "mat", v.where, assignable=False)
        return True

    # Functions and objects

    def do_tuple_call(self):
        functions = [v for v in self.variables if v.kind == "tuple function" and v.more is not self.inside]
        if not functions:
            return False
        v = self.choose(functions)
        where = self.place()
        names = [self.fresh(k[0]) for k in v.more.result]
        self.emit(f"{', '.join(names)} = {v.text}({self.arguments(v.more.takes, where)})")
        for name, kind in zip(names, v.more.result, strict=True):
            self.declare(name, kind, where)
        return True

    def do_template(self):
        """A call of a function that was written by a template."""
        calls = [v for v in self.variables if v.kind == "template"]
        if not calls or self.inside:
            return False
        return self.choose(calls).more(self)

    # Containers

    def do_list(self):
        kind, where = self.choose(["vec", "vec", "mat"]), self.place()
        count = self.random.randint(2, 3)
        name = self.fresh("parts")
        lists = self.visible("list")
        if lists and self.chance(0.4):
            source = self.choose(lists)
            device = self.device(where)
            if device is None:
                return False
            self.emit(f"{name} = [t.to({device}) for t in {source.text}]")
            self.declare(name, "list", where, source.more)
            return True
        form = self.choose(["literal", "append", "comprehension"])
        if form == "literal":
            self.emit(f"{name} = [{', '.join(self.expression(kind, where, 0) for _ in range(count))}]")
        elif form == "append":
            self.emit(f"{name} = []")
            if self.chance(0.5) and not self.loops:
                self.emit(f"for {self.fresh('j')} in range({count}):")
                self.emit(f"    {name}.append({self.expression(kind, where)})")
            else:
                for _ in range(count):
                    self.emit(f"{name}.append({self.operand(kind, where)})")
        else:
            self.emit(f"{name} = [{self.make(kind, where)} for _ in range({count})]")
        self.declare(name, "list", where, kind)
        for i in range(2):
            self.declare(f"{name}[{i}]", kind, where)
        return True

    def do_use_list(self):
        lists = self.visible("list")
        if not lists:
            return False
        v = self.choose(lists)
        name = self.fresh("all")
        whole = {"vec": ["torch.stack({}).mean(0)", "sum({})", "torch.cat({})[:4]", "{}[0] + {}[1]", "max({}, key=lambda t: t.dim())", "torch.stack(tuple({}))[0]", "{}[-1]",
                         "sum(t * 2 for t in {})", "torch.stack([t + 1 for t in {}])[0]", "list(map(torch.relu, {}))[0]", "next(iter({}))", "(lambda first, *rest: first)(*{})",
                         "torch.stack(list(reversed({}))).sum(0)", "reduce(torch.add, {})"],
                 "mat": ["torch.stack({})[0]", "sum({})", "torch.cat({}, dim=0)[:4]", "torch.cat({}, 1)[:, :4]", "{}[0] @ {}[1]", "{}[-1]"]}  # fmt: skip
        text = self.choose(whole[v.more])
        self.emit(f"{name} = {text.replace('{}', v.text)}")
        self.declare(name, v.more, v.where)
        return True

    def do_dict(self):
        kind, where = self.choose(["vec", "vec", "mat"]), self.place()
        name = self.fresh("table")
        dicts = self.visible("dict")
        if dicts and self.chance(0.4):
            source, device = self.choose(dicts), self.device(where)
            if device is None:
                return False
            self.emit(f"{name} = {{k: t.to({device}) for k, t in {source.text}.items()}}")
            kind = source.more
        elif self.chance(0.7):
            self.emit(f"{name} = {{\"a\": {self.operand(kind, where)}, \"b\": {self.operand(kind, where)}}}")
        else:
            self.emit(f"{name} = dict(a={self.operand(kind, where)}, b={self.operand(kind, where)})")
        self.declare(name, "dict", where, kind)
        for key in "ab":
            self.declare(f"{name}[\"{key}\"]", kind, where)
        return True

    def do_list_change(self):
        # A loop over a list that grows never ends.
        if self.loops or not (lists := [v for v in self.visible("list") if v.assignable]):
            return False
        v = self.choose(lists)
        given = self.operand(v.more, v.where)
        self.emit(self.choose(["{0}.append({1})", "{0}.extend([{1}])", "{0}[0] = {1}", "{0}.insert(0, {1})", "{0} += [{1}]", "{0}.reverse()", "{0}[0], {0}[1] = {0}[1], {0}[0]",
                               "{0}.pop(0) if len({0}) > 2 else None"]).format(v.text, given))  # fmt: skip
        return True

    def do_dict_change(self):
        if self.loops or not (dicts := [v for v in self.visible("dict") if v.assignable]):
            return False
        v = self.choose(dicts)
        given = self.operand(v.more, v.where)
        if self.chance(0.5):
            self.emit(self.choose(["{0}[\"a\"] = {1}", "{0}.update(b={1})", "{0}.setdefault(\"a\", {1})", "{0}.update({{\"a\": {1}}})", "{0} = {{**{0}, \"b\": {1}}}"]).format(v.text, given))
            return True
        self.emit(f"{(name := self.fresh('entry'))} = " + self.choose(["{0}.get(\"a\")", "{0}[\"b\"]", "sum({0}.values())", "next(iter({0}.values()))", "dict(**{0})[\"a\"]", "{0}.get(\"c\", {1})"]).format(v.text, given))
        self.declare(name, v.more, v.where)
        return True

    def do_replace(self):
        """Another part for a module that has been made, and perhaps moved."""
        if self.inside:
            return False
        found = []
        for v in self.visible("module"):
            for part in v.more.more_attributes if v.assignable else ():
                made = [constructor for constructor, info in [*MODULES, *self.definitions] if info is part.more and "{" not in constructor]
                if part.kind == "module" and part.text.isidentifier() is False and "[" not in part.text and made:
                    found.append((v, part.text.partition(".")[2], made[0]))
        if not found:
            return False
        v, part, constructor = self.choose(found)
        device = self.device(v.where)
        moved = "" if self.same(v.where, CPU) or device is None or self.mistake() else f".to({device})"
        self.emit(f"{v.text}.{part} = {constructor}{moved}")
        return True

    def do_pair(self):
        first, second = self.kind(), self.kind()
        here, there = self.place(), self.place()
        name = self.fresh("pair")
        texts = self.operand(first, here), self.operand(second, there)
        if self.chance(0.5):
            names = self.fresh(first[0]), self.fresh(second[0])
            self.emit(f"{name} = ({texts[0]}, {texts[1]})")
            self.emit(f"{names[0]}, {names[1]} = {name}")
            self.declare(names[0], first, here)
            self.declare(names[1], second, there)
        else:
            record = self.choose(["Batch", "Sample"])
            self.emit(f"{name} = {record}({texts[0]}, {texts[1]})")
            self.declare(f"{name}.x", first, here, assignable=record == "Sample")
            self.declare(f"{name}.y", second, there, assignable=record == "Sample")
        return True

    # The rest

    def do_numpy(self):
        if not (v := self.some("vec", "mat")) or self.inside:
            return False
        before = "" if self.is_all(v.where, "cpu") and self.chance(0.5) else ".cpu()"
        if self.mistake():
            before = ""
        name = self.fresh("array")
        self.emit(f"{name} = " + self.choose(["{}.numpy()", "np.asarray({})", "np.array({})"]).format(v.text + ".detach()" + before))
        if v.kind == "vec" and self.chance(0.5):
            self.emit(f"{(again := self.fresh('back'))} = torch.from_numpy({name})")
            self.declare(again, "vec", CPU)
        return True

    def do_show(self):
        if not (v := self.some()):
            return False
        self.emit(self.choose(["print({0}.shape)", "print({0})", "print({0}.device)", "assert {0} is not None", "print(\"here:\", {0})"]).format(v.text))
        return True

    def do_delete(self):
        if not (v := self.some()) or not v.text.isidentifier() or len(self.visible(v.kind)) < 4 or self.depth > self.base:
            return False
        self.emit(f"del {v.text}")
        self.variables = [o for o in self.variables if o is not v and not o.text.startswith((v.text + ".", v.text + "["))]
        return True


SIMPLE = {"new": 14, "make": 6, "rebind": 8, "alias": 2, "swap": 1, "move": 8, "inplace": 7, "module_call": 6, "template": 3, "tuple_call": 2,
          "conditional": 2, "use_list": 2, "show": 1, "pair": 2}  # fmt: skip
ALL = SIMPLE | {"device": 3, "module": 6, "module_move": 4, "parameter": 2, "branch": 6, "branch_value": 3, "flag": 1, "leave": 1, "unguarded": 1,
                "second": 1, "for": 4, "while": 2, "for_list": 3, "for_dict": 2, "list": 4, "dict": 3, "list_change": 2, "dict_change": 2, "replace": 3, "try": 2, "with": 3, "numpy": 2, "delete": 1}  # fmt: skip
