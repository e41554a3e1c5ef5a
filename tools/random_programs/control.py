"""Control flow: branches on what the machine has, on flags and devices; loops, handlers and contexts."""

from expressions import TENSORS
from scope import CPU, CUDA, WORLDS, everywhere


class Control:
    """How `Program` writes control flow; mixed into it."""

    # Branches

    def split(self, text, holds, both=None):
        """`if text:` with different blocks; `holds` says in which worlds it is true."""
        active, before = self.active, self.snapshot()
        yes = {w for w in active if holds(w)}
        self.emit(f"if {text}:")
        self.bodies += 1
        self.active = yes
        self.block(self.random.randint(1, 2)) if both is None else both(True)
        self.restore(before)
        if both is not None or self.chance(0.4):
            self.emit("else:")
            self.active = active - yes
            self.block(self.random.randint(1, 2)) if both is None else both(False)
            self.restore(before)
        self.bodies -= 1
        self.active = active

    def test(self):
        """A test on the machine, a flag or a device, and where it holds."""
        options = [("torch.cuda.is_available()", lambda w: w[0] > 0)] * 3
        options += [("not torch.cuda.is_available()", lambda w: w[0] == 0), ("torch.cuda.device_count() > 1", lambda w: w[0] > 1),
                    ("torch.cuda.device_count() >= 1", lambda w: w[0] > 0), ("torch.cuda.device_count() == 1", lambda w: w[0] == 1)]  # fmt: skip
        for v in self.visible("bool"):
            options += [(v.text, lambda w, v=v: bool(v.where[w])), (f"not {v.text}", lambda w, v=v: not v.where[w])]
            options += [(f"{v.text} and torch.cuda.is_available()", lambda w, v=v: bool(v.where[w]) and w[0] > 0)]
        found = [v for k in TENSORS for v in self.visible(k) if self.known(v.where)]
        if found:
            v = self.choose(found)
            options += [(self.choose(["{}.is_cuda", "{}.device.type == \"cuda\"", "{}.device != torch.device(\"cpu\")"]).format(v.text),
                         lambda w: v.where[w] != "cpu")]  # fmt: skip
        return self.choose(options)

    def do_branch(self):
        self.split(*self.test())
        return True

    def do_branch_value(self):
        """Both sides define a variable; often each on its own device."""
        text, holds = self.test()
        kind = self.kind()
        name = self.fresh(kind[0])
        places = {}

        def side(yes):
            self.depth += 1
            where = self.place() if self.active else CPU
            self.emit(f"{name} = {self.make(kind, where) if self.chance(0.6) else self.expression(kind, where)}")
            places.update({w: where.get(w) for w in self.active})
            self.depth -= 1

        self.split(text, holds, side)
        self.declare(name, kind, places)
        return True

    def do_conditional(self):
        text, holds = self.test()
        kind, active, places, sides = self.kind(), self.active, {}, []
        for chosen in ({w for w in active if holds(w)}, {w for w in active if not holds(w)}):
            self.active = chosen
            where = self.place() if chosen else CPU
            sides.append(self.operand(kind, where))
            places.update({w: where.get(w) for w in chosen})
        self.active = active
        self.emit(f"{(name := self.fresh(kind[0]))} = {sides[0]} if {text} else {sides[1]}")
        self.declare(name, kind, places)
        return True

    def do_flag(self):
        if self.inside:
            return False
        text, holds = self.test()
        self.emit(f"{(name := self.fresh('flag'))} = {text}")
        self.declare(name, "bool", {w: int(holds(w)) for w in self.active})
        return True

    def do_leave(self):
        """What leaves the program where something is missing."""
        if self.inside or self.depth > self.base or self.loops or len(self.active) < len(WORLDS) // 2:
            return False
        count = self.choose([1, 1, 2])
        text = "not torch.cuda.is_available()" if count == 1 else "torch.cuda.device_count() < 2"
        if not any(w[0] >= count for w in self.active) or not self.chance(0.5):
            return False
        self.emit(f"if {text}:")
        self.emit("    " + self.choose(["sys.exit(0)", "raise SystemExit", "sys.exit()"] + (["return"] if self.base else [])))
        self.active = {w for w in self.active if w[0] >= count}
        return True

    def do_unguarded(self):
        """CUDA without a question."""
        if self.inside or not self.chance(0.2) or not (v := self.some()) or (0, False) not in self.active or self.depth > self.base:
            return False
        self.emit(f"{v.text} = {v.text}" + self.choose([".cuda()", ".to(\"cuda\")", ".to(torch.device(\"cuda:0\"))"]))
        self.active = {w for w in self.active if w[0]}
        if not self.active:
            self.active = {w for w in WORLDS if w[0]}
        self.rebind(v, CUDA)
        return True

    def do_second(self):
        """The second GPU without a question."""
        if self.inside or not self.chance(0.15) or not (v := self.some()) or self.depth > self.base:
            return False
        if any(w[0] == 0 for w in self.active) or not any(w[0] > 1 for w in self.active):
            return False
        self.emit(f"{v.text} = {v.text}" + self.choose([".cuda(1)", ".to(\"cuda:1\")", ".to(torch.device(\"cuda\", 1))"]))
        self.active = {w for w in self.active if w[0] > 1}
        self.rebind(v, everywhere("cuda:1"))
        return True

    # Loops

    def do_for(self):
        if self.loops > 1:
            return False
        before = self.snapshot()
        name = self.fresh("i")
        self.emit(f"for {name} in range({self.random.randint(1, 3)}):")
        self.loop_body(f"{name} == 1")
        self.restore(before)
        if self.chance(0.1):
            self.emit("else:")
            self.block(1)
            self.restore(before)
        return True

    def do_while(self):
        if self.loops > 1:
            return False
        name = self.fresh("n")
        self.emit(f"{name} = 0")
        before = self.snapshot()
        self.emit(f"while {name} < {self.random.randint(1, 3)}:")
        self.emit(f"    {name} += 1")
        self.loop_body(f"{name} == 2")
        self.restore(before)
        return True

    def loop_body(self, second):
        self.loops += 1
        self.bodies += 1
        self.block(self.random.randint(1, 3))
        if self.chance(0.2):
            self.depth += 1
            before = self.snapshot()
            self.emit(f"if {second}:")
            if self.chance(0.5):
                self.emit("    " + self.choose(["break", "continue"]))
            else:
                self.block(1)
            self.restore(before)
            self.depth -= 1
            if self.chance(0.5):
                self.block(1)
        self.bodies -= 1
        self.loops -= 1

    def do_for_list(self):
        lists = self.visible("list")
        if not lists or self.loops > 1:
            return False
        v = self.choose(lists)
        before = self.snapshot()
        name = self.fresh("each")
        other = self.choose(lists)
        way = self.choose(["plain", "enumerate", "zip"])
        if way == "plain":
            self.emit(f"for {name} in {v.text}:")
        elif way == "enumerate":
            self.emit(f"for {self.fresh('k')}, {name} in enumerate({v.text}):")
        else:
            second = self.fresh("each")
            self.emit(f"for {name}, {second} in zip({v.text}, {other.text}):")
            self.declare(second, other.more, other.where)
        self.declare(name, v.more, v.where)
        self.loop_body(f"{name} is not None")
        self.restore(before)
        return True

    def do_for_dict(self):
        dicts = self.visible("dict")
        if not dicts or self.loops > 1:
            return False
        v = self.choose(dicts)
        before = self.snapshot()
        key, name = self.fresh("key"), self.fresh("each")
        self.emit(self.choose([f"for {key}, {name} in {v.text}.items():", f"for {name} in {v.text}.values():"]))
        self.declare(name, v.more, v.where)
        self.loop_body(f"{name} is not None")
        self.restore(before)
        return True

    # Handlers and contexts

    def do_try(self):
        before = self.snapshot()
        self.emit("try:")
        self.bodies += 1
        self.block(self.random.randint(1, 2))
        self.restore(before)
        if self.chance(0.3):
            self.emit("finally:")
            self.emit("    print(\"done\")")
            self.bodies -= 1
            return True
        self.emit(self.choose(["except RuntimeError:", "except RuntimeError as error:", "except Exception:", "except (ValueError, KeyError):"]))
        self.depth += 1
        self.emit(self.choose(["pass", "print(\"failed\")"]))
        self.depth -= 1
        self.bodies -= 1
        return True

    def do_with(self):
        way = self.choose(["torch.no_grad()", "torch.no_grad()", "torch.set_grad_enabled(False)", "device"])
        default = self.default
        if way == "device":
            where = self.place()
            device = self.device(where)
            if device is None or device.isdigit() or self.inside:
                return False
            way = f"torch.device({device})"
            self.default = where
        self.emit(f"with {way}:")
        self.bodies += 1
        self.block(self.random.randint(1, 3))
        self.bodies -= 1
        self.default = default
        return True
