"""Mutations of text. They know nothing of Python but its tokens, so most results are broken programs."""

import re

from seeds import MAX_BYTES

TOKEN = re.compile(rb"\w+|\s+|'[^'\n]*'|\"[^\"\n]*\"|#[^\n]*|[^\w\s]")

# What the linter acts on, and what a reader of Python may stumble over.
DICTIONARY = [
    *b"if elif else for while try except finally with as def class lambda async await yield return raise import from".split(),
    *b"global nonlocal del assert match case type break continue pass not and or in is None True self super".split(),
    *b"torch nn cuda cpu mps meta device to .cuda() .cpu() .to(device) 'cuda:1' \"cuda\" 'cpu' torch.cuda".split(),
    *b"torch.cuda.is_available() torch.device('cuda') torch.load(p) nn.Module nn.Linear(2,2) @torch.no_grad()".split(),
    *b"( ) [ ] { } : ; , . -> := ** * @ \\ ' \" ''' \"\"\" f\" rb' t\" # ! { $ ? ` == != <<= ... 0x 1e999 1_0 0b 9j".split(),
    b"# samedevice: ignore[SD101] reason\n",
    b"# samedevice: file-ignore\n",
    b"# samedevice: ignore[",
    b"# noqa: SD101, E501\n",
    b"# noqa\n",
    b"# -*- coding: latin-1 -*-\n",
    b"# fmt: off\n",
    b"\n", b"\r", b"\r\n", b"\t", b"\x0c", b"\x0b", b"\0", b"\x1a", b"\x1b[31m", b" ", b"\xc2\xa0",
    b"\xef\xbb\xbf", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"\xf0\x9d\x94\xb5", b"\xcc\x81", b"\xd8\xaa", b"\xc2\x85",
]


def mutated(rng, corpus):
    """A program of the corpus after one to eight mutations."""
    content = rng.choice(corpus)
    for _ in range(rng.choice((1, 1, 2, 2, 3, 5, 8))):
        content = rng.choice(MUTATIONS)(rng, content, corpus)[:MAX_BYTES]
    return content


def few(rng):
    """How often something is repeated: mostly once or twice, now and then hundreds of times."""
    return rng.choice((1, 1, 1, 2, 3, 10, rng.randint(1, 400)))


def tokens(rng, content, corpus):
    """Removes, doubles, swaps or replaces a token."""
    parts = TOKEN.findall(content) or [b""]
    at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    match rng.randrange(6):
        case 0:
            del parts[at : at + few(rng)]
        case 1:
            parts[at] *= few(rng)
        case 2:
            parts[at], parts[other] = parts[other], parts[at]
        case 3:
            parts[at] = parts[other]
        case 4:
            parts[at] = rng.choice(TOKEN.findall(rng.choice(corpus)) or [b""])
        case _:
            parts.insert(at, rng.choice(DICTIONARY) * few(rng))
    return b"".join(parts)


def characters(rng, content, corpus):
    """Flips a bit, removes a few bytes, or cuts the end off."""
    at = rng.randrange(len(content) + 1)
    match rng.randrange(4):
        case 0 if at < len(content):
            return content[:at] + bytes([content[at] ^ 1 << rng.randrange(8)]) + content[at + 1 :]
        case 1:
            return content[:at] + content[at + few(rng) :]
        case 2:
            return content[:at]
        case _:
            return content[:at] + rng.choice(DICTIONARY) + content[at:]


def lines(rng, content, corpus):
    """Removes, doubles, swaps, moves or joins lines."""
    parts = content.splitlines(keepends=True) or [b""]
    at, other = rng.randrange(len(parts)), rng.randrange(len(parts))
    end = at + rng.randint(1, 5)
    match rng.randrange(6):
        case 0:
            del parts[at:end]
        case 1:
            parts[at:end] = parts[at:end] * few(rng)
        case 2:
            parts[at], parts[other] = parts[other], parts[at]
        case 3:
            moved = parts[at:end]
            del parts[at:end]
            parts[other:other] = moved
        case 4:
            parts[at] = parts[at].rstrip(b"\r\n") + rng.choice((b"", b"\\\n", b"; ", b"\r"))
        case _:
            rng.shuffle(parts)
    return b"".join(parts)


def brackets(rng, content, corpus):
    """Removes, exchanges or adds brackets, at times many around each other."""
    places = [at for at, byte in enumerate(content) if byte in b"()[]{}"]
    opened, closed = rng.choice(((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"(", b""), (b"", b"]"), (b"f(", b")"), (b"x[", b"]")))
    if not places or rng.random() < 0.4:
        at = rng.randrange(len(content) + 1)
        end = min(len(content), at + rng.randrange(30))
        count = few(rng)
        return content[:at] + opened * count + content[at:end] + closed * count + content[end:]
    at = rng.choice(places)
    return content[:at] + rng.choice((b"", opened, closed, content[at : at + 1] * few(rng))) + content[at + 1 :]


def indentation(rng, content, corpus):
    """Moves lines to the right or left, with spaces, tabs or form feeds."""
    parts = content.splitlines(keepends=True) or [b""]
    at = rng.randrange(len(parts))
    end = at + rng.randint(1, 10)
    space = rng.choice((b" ", b"    ", b"\t", b"        ", b" \t", b"\x0c", b"\x0c    "))
    if rng.random() < 0.5:
        parts[at:end] = [space + line for line in parts[at:end]]
    else:
        parts[at:end] = [line[min(len(line) - len(line.lstrip(b" \t")), len(space)) :] for line in parts[at:end]]
    return b"".join(parts)


def splice(rng, content, corpus):
    """Puts a part of another program into this one, or its end in place of this one's end."""
    other = rng.choice(corpus)
    if rng.random() < 0.3:
        return content[: rng.randrange(len(content) + 1)] + other[rng.randrange(len(other)) :]
    mine, theirs = content.splitlines(keepends=True), other.splitlines(keepends=True)
    at, start = rng.randrange(len(mine) + 1), rng.randrange(len(theirs))
    end = start + rng.randint(1, 20)
    return b"".join(mine[:at] + theirs[start:end] + (mine[at:] if rng.random() < 0.7 else []))


MUTATIONS = [tokens, tokens, tokens, characters, lines, lines, brackets, indentation, splice, splice]
