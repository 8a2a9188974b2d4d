"""``quartbench warmup``: compile every kernel, once and for all, on every core."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from functools import cache
from multiprocessing import get_context
from types import CodeType, ModuleType

import click
from rich.console import Console

from .display import progress

#: The largest group of kernels takes two fifths of all the time: further processes would wait for the one that has it.
MOST_PROCESSES = 3


@click.command()
def warmup() -> None:
    """Compile every kernel once, on up to three cores.

    Later runs load the machine code from disk. Takes a minute or two; nothing needs it, but the first use of a kernel
    is then as fast as the next.
    """
    from quartbench.kernels import jit
    from quartbench.kernels.warmup import tasks

    work = [name for name, _ in tasks()]
    groups, processes = sorted(joined(work), key=len, reverse=True), min(cores(), MOST_PROCESSES)
    with progress(Console(stderr=True)) as bar:
        task = bar.add_task("compiling", total=len(work))
        for name in compiled(groups, processes):
            bar.update(task, description=f"compiled {name}")
            bar.advance(task)
    layer = jit.LAYER or "none that is thread-safe: kernels run serially"
    click.echo(f"{len(work)} kernels ready (threading layer: {layer})")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def joined(work: list[str]) -> list[list[str]]:
    """Return the names of tasks in groups, no two of which compile a common function.

    Numba keeps one index of machine code for each function, reads it, adds to it and writes it anew. Two processes that
    do so at once for different types could leave an index that gives the code for one type to the other.
    """
    groups: list[tuple[set[object], list[str]]] = []
    for name in work:
        functions, names = _functions(_kernel(name)), [name]
        apart = []
        for other in groups:
            if functions.isdisjoint(other[0]):
                apart.append(other)
            else:
                functions, names = functions | other[0], other[1] + names
        groups = [*apart, (functions, names)]
    return [names for _, names in groups]


def compiled(groups: list[list[str]], processes: int) -> Iterator[str]:
    """Yield each name once its kernel is compiled: each process takes a group at a time, the first ones first."""
    if processes == 1:
        for names in groups:
            yield from map(_compile, names)
        return
    waiting = iter(groups)
    running: dict[Future[str], tuple[ProcessPoolExecutor, Iterator[str]]] = {}

    def go_on(process: ProcessPoolExecutor, names: Iterator[str]) -> None:
        while (name := next(names, None)) is None:
            if (group := next(waiting, None)) is None:
                return
            names = iter(group)
        running[process.submit(_compile, name)] = (process, names)

    with ExitStack() as stack:
        for _ in range(processes):
            # An interruption reaches all: the children end with the kernel they are at, without a word.
            process = ProcessPoolExecutor(1, get_context("spawn"), signal.signal, (signal.SIGINT, signal.SIG_IGN))
            go_on(stack.enter_context(process), iter(()))
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield future.result()
                go_on(*running.pop(future))


def _compile(name: str) -> str:
    _calls()[name]()
    return name


@cache
def _calls() -> dict[str, Callable[[], object]]:
    from quartbench.kernels.warmup import tasks

    return dict(tasks())


def _kernel(name: str) -> object:
    """Return the kernel of a task, which is named "module.kernel (types)"."""
    from quartbench.kernels import warmup as room

    module, _, kernel = name.partition(" ")[0].partition(".")
    return getattr(getattr(room, module), kernel)


def _functions(kernel: object) -> set[object]:
    """Return a kernel and all compiled functions that it calls, directly or not."""
    found, left = set(), [kernel]
    while left:
        function = left.pop()
        if function not in found and hasattr(function, "py_func"):
            found.add(function)
            left += _named(function.py_func.__code__, function.py_func.__globals__)
    return found


def _named(code: CodeType, scope: dict[str, object]) -> Iterator[object]:
    """Yield what the names in a piece of code may mean: global names, and those of modules that it names."""
    for name in code.co_names:
        meant = scope.get(name)
        yield meant
        if isinstance(meant, ModuleType):
            yield from (getattr(meant, other, None) for other in code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _named(inner, scope)
