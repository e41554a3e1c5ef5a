"""What a program that is being written knows: its variables and, for each machine, where they are meant to be.

The generator follows the program along with the machines it would run on, roughly. So it can write long programs that
work, and plant a mistake now and then. PyTorch, not this belief, says what is right.
"""

from dataclasses import dataclass

# A place for each world, a world being a number of GPUs and a value of the program's flag. "P" and "M" stand for the
# place of a function's arguments and of a module.
Where = dict

GPUS = (0, 1, 4)
WORLDS = tuple((gpus, flag) for gpus in GPUS for flag in (False, True))


def everywhere(place):
    return {world: place for world in WORLDS}


CPU = everywhere("cpu")
CUDA = everywhere("cuda:0")
BEST = {world: "cuda:0" if world[0] else "cpu" for world in WORLDS}
SECOND = {world: ("cuda:1" if world[0] > 1 else "cuda:0") if world[0] else "cpu" for world in WORLDS}


@dataclass
class Var:
    """Something that an expression may name. `text` need not be an identifier: `self.weight`, `batch.x`."""

    text: str
    kind: str
    where: Where
    # What is known besides: the definition of a module or a function, the kind of a list's elements.
    more: object = None
    assignable: bool = True


class Program:
    """A program being written: its lines, its names, its variables."""

    def __init__(self, random, mistakes):
        self.random = random
        # How likely a choice is a mistake.
        self.mistakes = mistakes
        self.lines = []
        self.depth = 0
        self.active = set(WORLDS)
        self.variables = []
        self.default = CPU
        self.counts = {}
        # Modules that the program defines, and comments that say how to call what it defines.
        self.definitions = []
        self.calls = []
        self.bodies = 0
        self.loops = 0
        # The function that is being written, and the depth of the program's main part.
        self.inside = None
        self.base = -1

    # Text

    def emit(self, text):
        self.lines.append("    " * self.depth + text if text else "")

    def fresh(self, stem):
        number = self.counts.get(stem, 0)
        self.counts[stem] = number + 1
        return stem if number == 0 else f"{stem}{number + 1}"

    # Chance

    def chance(self, probability):
        return self.random.random() < probability

    def choose(self, options):
        return options[self.random.randrange(len(options))]

    def mistake(self):
        return self.chance(self.mistakes)

    # Places

    def same(self, one, other):
        return all(one.get(w) == other.get(w) for w in self.active)

    def is_all(self, where, place):
        return all(where.get(w) == place for w in self.active)

    def known(self, where):
        """Whether these are real places, none of them that of an argument."""
        return all(where.get(w, "?").startswith("c") for w in self.active)

    def now(self, before, after):
        """`after` on the machines that get here, and `before` on the others."""
        return {w: (after if w in self.active else before).get(w) for w in WORLDS}

    # Variables

    def visible(self, kind):
        return [v for v in self.variables if v.kind == kind and all(v.where.get(w) is not None for w in self.active)]

    def declare(self, text, kind, where, more=None, assignable=True):
        where = {w: where.get(w) for w in self.active}
        self.variables = [v for v in self.variables if v.text != text and not v.text.startswith((text + ".", text + "["))]
        found = Var(text, kind, where, more, assignable)
        self.variables.append(found)
        return found

    def rebind(self, variable, where):
        self.forget_parts(variable.text)
        variable.where = self.now(variable.where, where)

    def forget_parts(self, text):
        self.variables = [v for v in self.variables if not v.text.startswith((text + ".", text + "["))]

    def snapshot(self):
        return [(v, dict(v.where)) for v in self.variables]

    def restore(self, snapshot):
        """Back to the variables of `snapshot`, with the places they have now."""
        self.variables = [v for v, _ in snapshot]

    def reset(self, snapshot):
        """Back to the variables of `snapshot`, and to the places they had."""
        for variable, where in snapshot:
            variable.where = where
        self.variables = [v for v, _ in snapshot]
