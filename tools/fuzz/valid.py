"""Programs that Python accepts: mutations of syntax trees, written out in an odd layout."""

import ast
import copy
import itertools
import warnings

from layout import laid_out
from seeds import MAX_BYTES
from shapes import EXPRESSIONS, STATEMENTS, TARGETS, text_of

# Deeper trees are the business of `shapes.text_of`.
DEEPEST = 60
# Nodes of a tree; a text of `MAX_BYTES` has about as many.
LARGEST = 20_000


def valid(rng, corpus):
    """A program made of one or two of the corpus, or of nothing but a shape, that Python accepts. What is made for newer versions of Python than
    this one it need not accept: see `accepts`."""
    while True:
        text = text_of(rng) if rng.random() < 0.15 else grown(rng, corpus)
        if text is not None and 0 < len(text) <= MAX_BYTES:
            content = laid_out(rng, text)
            if accepts(content) or rng.random() < 0.1:
                return content


def accepts(content):
    """Does this Python compile it? Deeper trees than its compiler can work on count as refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(content, "program.py", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, LookupError):
        return False
    return True


def grown(rng, corpus):
    """The text of a program after some mutations of its tree; None if that cannot be written out."""
    tree, donor = parsed(rng.choice(corpus)), parsed(rng.choice(corpus))
    if tree is None:
        return None
    try:
        for _ in range(rng.choice((1, 2, 3, 5, 8, 13))):
            # A shape may use a part twice, so that a few of them in one another make a tree too large to write out.
            if is_large(tree):
                return None
            rng.choice(MUTATIONS)(rng, tree, donor or tree)
        if is_large(tree):
            return None
        return ast.unparse(ast.fix_missing_locations(tree))
    except (ValueError, RecursionError, AttributeError, TypeError):
        # Not every tree has a text: an f-string within another one may lack a free kind of quotes.
        return None


def parsed(content):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(content)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def size(tree):
    """The number of nodes, of which no more are counted than `LARGEST` and one."""
    return sum(1 for _ in itertools.islice(ast.walk(tree), LARGEST + 1))


def is_large(tree):
    return size(tree) > LARGEST


def expressions(tree):
    """Where an expression that is read stands: the node, the field, and the index in a list or None."""
    found = []
    for node in ast.walk(tree):
        # Formatted values hold strings that are no expressions of their own, patterns only some kinds of expressions.
        if isinstance(node, (ast.JoinedStr, ast.MatchValue, ast.MatchClass, ast.MatchMapping)):
            continue
        for field, value in ast.iter_fields(node):
            values = enumerate(value) if isinstance(value, list) else [(None, value)]
            found += [(node, field, at) for at, one in values if is_read(one)]
    return found


def is_read(node):
    if not isinstance(node, ast.expr) or isinstance(node, (ast.Slice, ast.JoinedStr, ast.FormattedValue)):
        return False
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def blocks(tree):
    """The lists of statements of a tree."""
    fields = ("body", "orelse", "finalbody")
    found = [getattr(node, field, None) for node in ast.walk(tree) for field in fields]
    return [block for block in found if isinstance(block, list) and block]


def get(place):
    node, field, at = place
    return getattr(node, field) if at is None else getattr(node, field)[at]


def put(place, value):
    node, field, at = place
    if at is None:
        setattr(node, field, value)
    else:
        getattr(node, field)[at] = value


def wrap_expression(rng, tree, donor):
    """Puts an expression into a larger one, at times many times over."""
    places = expressions(tree)
    if not places:
        return
    place = rng.choice(places)
    shape = rng.choice(EXPRESSIONS)
    for _ in range(rng.choice((1, 1, 1, 2, 3, rng.randint(1, DEEPEST)))):
        put(place, shape(rng, get(place)))
        if rng.random() < 0.2:
            shape = rng.choice(EXPRESSIONS)


def replace_expression(rng, tree, donor):
    """Puts an expression of the donor in place of one."""
    places, others = expressions(tree), expressions(donor)
    if places and others:
        put(rng.choice(places), copy.deepcopy(get(rng.choice(others))))


def wrap_statements(rng, tree, donor):
    """Puts statements into a compound statement, at times many times over."""
    found = blocks(tree)
    if not found:
        return
    block = rng.choice(found)
    at = rng.randrange(len(block))
    end = at + rng.randint(1, 6)
    shape = rng.choice(STATEMENTS)
    for _ in range(rng.choice((1, 1, 1, 2, rng.randint(1, 18)))):
        block[at:end] = shape(rng, block[at:end])
        end = at + 1
        if rng.random() < 0.3:
            shape = rng.choice(STATEMENTS)


def repeat_statements(rng, tree, donor):
    """Repeats statements, at times with another name in each copy."""
    found = blocks(tree)
    if not found:
        return
    block = rng.choice(found)
    at = rng.randrange(len(block))
    part = block[at : at + rng.randint(1, 4)]
    copies = []
    count = rng.choice((1, 2, 5, 20, rng.randint(1, 100)))
    for number in range(min(count, LARGEST // sum(map(size, part)))):
        copies += copy.deepcopy(part)
        if rng.random() < 0.3:
            rename(rng, ast.Module(body=copies[-len(part) :], type_ignores=[]), number)
    block[at + len(part) : at + len(part)] = copies


def rename(rng, tree, number):
    names = [node for node in ast.walk(tree) if isinstance(node, (ast.Name, ast.Attribute))]
    if names:
        node = rng.choice(names)
        field = "id" if isinstance(node, ast.Name) else "attr"
        setattr(node, field, rng.choice((f"{getattr(node, field)}{number}", "device", "cuda", "x", "ｅ", "名前", "__class__", "_", "self")))


def rename_one(rng, tree, donor):
    rename(rng, tree, rng.randrange(9))


def insert_statements(rng, tree, donor):
    """Puts statements of the donor somewhere."""
    found, others = blocks(tree), blocks(donor)
    if found and others:
        block, other = rng.choice(found), rng.choice(others)
        at, start = rng.randrange(len(block) + 1), rng.randrange(len(other))
        block[at:at] = copy.deepcopy(other[start : start + rng.randint(1, 8)])


def remove_statements(rng, tree, donor):
    found = blocks(tree)
    if found:
        block = rng.choice(found)
        at = rng.randrange(len(block))
        block[at : at + rng.randint(1, 3)] = [] if len(block) > 1 and at else [ast.Pass()]


def replace_target(rng, tree, donor):
    """Assigns to something else: an attribute, an item, several names, one of them starred."""
    assigned = [node for node in ast.walk(tree) if isinstance(node, (ast.Assign, ast.For, ast.AsyncFor))]
    if assigned:
        node = rng.choice(assigned)
        if isinstance(node, ast.Assign):
            node.targets.insert(rng.randrange(len(node.targets) + 1), rng.choice(TARGETS)(rng))
        else:
            node.target = rng.choice(TARGETS)(rng)


MUTATIONS = [
    wrap_expression, wrap_expression, wrap_expression, replace_expression, replace_expression,
    wrap_statements, wrap_statements, repeat_statements, rename_one, insert_statements, remove_statements, replace_target,
]
