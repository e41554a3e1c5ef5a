"""Delta debugging: the shortest part of an input that still shows the problem (Zeller and Hildebrandt, 2002)."""

import time


def smallest(parts, shows, seconds):
    """The smallest list made of these parts for which `shows` holds, as far as that is found in so many seconds."""
    deadline = time.monotonic() + seconds
    size = len(parts) // 2
    while size >= 1:
        at = 0
        while at < len(parts):
            if time.monotonic() > deadline:
                return parts
            rest = parts[:at] + parts[at + size :]
            if rest and shows(rest):
                parts = rest
            else:
                at += size
        size = min(size, len(parts)) // 2
    return parts


def minimised(content, shows, seconds):
    """The program without the lines, and then without the characters of short lines, that the problem does not need."""
    lines = smallest(content.splitlines(keepends=True), lambda part: shows(b"".join(part)), seconds / 2)
    characters = [bytes([byte]) for byte in b"".join(lines)]
    if len(characters) > 2000:
        return b"".join(lines)
    return b"".join(smallest(characters, lambda part: shows(b"".join(part)), seconds / 2))
