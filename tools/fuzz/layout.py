"""How a program's text becomes bytes: encodings, line ends, indentation and whatever else Python does not care about."""

import re

ENCODINGS = ["utf-8", "latin-1", "cp1252", "iso-8859-15", "koi8-r", "cp1251", "gbk", "shift_jis", "euc-jp", "big5", "ascii", "utf-8-sig"]
COMMENTS = [
    "# samedevice: ignore", "# samedevice: ignore[SD101, SD2] reason", "# samedevice: ignore[unguarded-cuda]", "# noqa", "# noqa: SD201,E501",
    "# samedevice: file-ignore[SD606]", "# type: ignore # noqa: SD101 # samedevice: ignore[SD9]", "# é ü ß", "#", "#!", "# \x0c",
]


def laid_out(rng, text):
    """The bytes of a program, in most cases odd in one or two ways."""
    for change in rng.sample(CHANGES, rng.choice((0, 1, 1, 2, 3))):
        text = change(rng, text)
    encoded = encode(rng, text) if rng.random() < 0.3 else text.encode("utf-8", "surrogatepass")
    return encoded


def line_ends(rng, text):
    """All of another kind, or of all kinds."""
    end = rng.choice(("\r\n", "\r", None))
    return re.sub("\n", lambda _: end or rng.choice(("\n", "\r\n", "\r")), text)


def tabs(rng, text):
    """Tabs in place of four spaces at the start of lines."""
    return re.sub(r"(?m)^(?: {4})+", lambda m: "\t" * (len(m[0]) // 4), text)


def form_feeds(rng, text):
    return re.sub(r"(?m)^(?=\S)", lambda _: "\x0c" if rng.random() < 0.2 else "", text)


def comments(rng, text):
    """At the end of lines and on lines of their own."""
    def one(match):
        return f"  {rng.choice(COMMENTS)}\n" if rng.random() < 0.3 else match[0] * rng.choice((1, 1, 2))

    return re.sub(r"\n", one, text)


def spaces(rng, text):
    """Spaces and continued lines around operators and after commas."""
    return re.sub(r" ([=+*@] |(?<=, ))", lambda m: rng.choice((m[0], f"  \t{m[0]}", f" \\\n {m[0]}")), text)


def blank_lines(rng, text):
    return re.sub(r"\n", lambda _: "\n" + rng.choice(("", "", "", " \t\n", "\n" * 3, "\x0c\n")), text)


def last_line(rng, text):
    """Does not end, or with a comment or many blank lines."""
    return text.rstrip("\n") + rng.choice(("", "  # noqa", "\n" * 9, "\n    \n\t", " ;", "\n    # samedevice: ignore"))


def names(rng, text):
    """Another spelling of letters, which Python takes for the same name (NFKC)."""
    return re.sub(r"\b(cuda|device|net|model)\b", lambda m: "".join(chr(ord(c) + 0x1D44E - ord("a")) if c != "h" else c for c in m[0]), text)


def first_line(rng, text):
    return rng.choice(("#!/usr/bin/env python\n", "\n\n", "'''A docstring.'''\n", "# a\n# b\n", "from __future__ import annotations\n", "\\\n")) + text


CHANGES = [line_ends, tabs, form_feeds, comments, spaces, blank_lines, last_line, names, first_line]


def encode(rng, text):
    """In another encoding, with the comment that says so, or with a byte order mark."""
    if rng.random() < 0.3:
        return b"\xef\xbb\xbf" + text.encode("utf-8", "surrogatepass")
    encoding = rng.choice(ENCODINGS)
    cookie = rng.choice(("# -*- coding: {} -*-", "# vim: set fileencoding={} :", "#coding={}", "#!/bin/python\n# coding: {}", "# encoding: {}"))
    content = f"{cookie.format(encoding)}\n{text}\nlabel = 'é я 語'\n"
    return content.encode(encoding, "ignore")
