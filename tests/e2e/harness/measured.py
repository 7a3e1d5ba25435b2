"""Delays that users feel, as they were in this run: the tests assert five times the figure, the summary shows the real ones."""

import collections
import statistics

_taken = collections.defaultdict(list)
_figures = {}


def note(what, seconds, figure):
    """Keeps one measurement beside the figure that users are promised, in seconds."""
    _taken[what].append(seconds)
    _figures[what] = figure


def lines():
    for what, seconds in _taken.items():
        middle, worst = (f"{value * 1000:.0f} ms" for value in (statistics.median(seconds), max(seconds)))
        yield f"{what}: median {middle}, worst {worst} of {len(seconds)} (figure {_figures[what] * 1000:.0f} ms)"
