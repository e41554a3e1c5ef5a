#!/usr/bin/env python3
"""Measures on a GPU what the pages in rules/ say of speed, memory and order. Needs a PyTorch with CUDA; half a minute.

    python tools/gpu_facts.py           all of them, each in a process of its own
    python tools/gpu_facts.py NAME...   some
"""

import os
import subprocess
import sys
import time


def created_then_moved():
    """SD601: microseconds for a tensor that is made on the host and copied, and for one that is made on the GPU."""
    import torch

    def clock(make, rounds=200):
        make()
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(rounds):
            make()
        torch.cuda.synchronize()
        return round((time.perf_counter() - start) / rounds * 1e6, 1)

    return {
        "eight zeros": (clock(lambda: torch.zeros(8).cuda()), clock(lambda: torch.zeros(8, device="cuda"))),
        "a million zeros": (clock(lambda: torch.zeros(1 << 20).cuda()), clock(lambda: torch.zeros(1 << 20, device="cuda"))),
        "a million random numbers": (clock(lambda: torch.randn(1 << 20).cuda(), 50), clock(lambda: torch.randn(1 << 20, device="cuda"))),
        "three given numbers": (clock(lambda: torch.tensor([1.0, 2.0, 3.0]).cuda()), clock(lambda: torch.tensor([1.0, 2.0, 3.0], device="cuda"))),
    }


def read_too_early():
    """SD603: what a non-blocking copy to the CPU shows at once, and after a synchronisation."""
    import torch

    x = torch.zeros(1 << 24, device="cuda")
    found = []
    for step in range(1, 6):
        torch.cuda.synchronize()
        torch.cuda._sleep(100_000_000)
        x.fill_(step)
        y = x.to("cpu", non_blocking=True)
        early = y[-1].item()
        torch.cuda.synchronize()
        found.append((early, y[-1].item()))
    return found


def retry_inside_handler():
    """SD504: whether a smaller attempt fits inside of the handler, and behind it."""
    import torch

    most = int(torch.cuda.mem_get_info()[0] * 0.6) // 4

    def attempt(size):
        first = torch.empty(most, device="cuda")
        return first, torch.empty(size, device="cuda")

    def fits():
        try:
            return bool(attempt(most // 4))
        except torch.OutOfMemoryError:
            return False

    try:
        attempt(most)
    except torch.OutOfMemoryError:
        inside = fits()
    return {"inside": inside, "behind": fits()}


def graphs_kept():
    """SD505, SD506: bytes on the GPU that a step leaves behind (the gradients of the first one are among them), and the most that a call takes."""
    import torch

    model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
    x = torch.randn(256, 1024, device="cuda")

    def sums(keep, backward=True, steps=100):
        model.zero_grad()
        before, total = torch.cuda.memory_allocated(), 0.0
        for _ in range(steps):
            loss = model(x).mean()
            if backward:
                loss.backward()
            total = total + keep(loss)
        return (torch.cuda.memory_allocated() - before) // steps

    def peak():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        model(x)
        return torch.cuda.max_memory_allocated() - before

    found = {
        "with the graph, behind backward()": sums(lambda loss: loss),
        "detached, behind backward()": sums(lambda loss: loss.detach()),
        "with the graph, without backward()": sums(lambda loss: loss, backward=False, steps=20),
        "most in a call": peak(),
    }
    with torch.no_grad():
        return {**found, "most in a call under no_grad()": peak()}


def visible_too_late():
    """SD403: whether hiding all GPUs behind a call still hides them."""
    calls = [
        "torch.device('cuda')", "torch.cuda.device_count()", "torch.cuda.manual_seed_all(0)", "torch.accelerator.current_accelerator()",
        "torch.cuda.is_available()", "torch.accelerator.is_available()", "torch.cuda.get_device_name()", "torch.cuda.set_device(0)",
    ]  # fmt: skip
    script = "import os, torch; {}; os.environ['CUDA_VISIBLE_DEVICES'] = ''; print('asked', flush=True); torch.ones(1).cuda()"

    def hides(call):
        ended = subprocess.run([sys.executable, "-c", script.format(call)], capture_output=True, text=True)
        return bool(ended.returncode) if ended.stdout == "asked\n" else "the call itself fails"

    return {call: hides(call) for call in calls}


FACTS = [created_then_moved, read_too_early, retry_inside_handler, graphs_kept, visible_too_late]


def main():
    names = sys.argv[1:]
    for fact in FACTS:
        if names and fact.__name__ not in names:
            continue
        if len(names) == 1:
            print(f"{fact.__name__}: {fact()}")
        else:
            subprocess.run([sys.executable, os.path.abspath(__file__), fact.__name__], check=True)


if __name__ == "__main__":
    main()
