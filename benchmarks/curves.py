"""Curves as an SVG picture: a few lines over the same days, with axes and names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 380, 60, 48, 40, 110
COLOURS = ("#6b7280", "#2563eb", "#d97706", "#059669")
STEPS, LINE = 5, 13


def draw(
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]], title: str, below: str, *, doublings: bool = False
) -> str:
    """The picture as text; each line is its x and its y values. With `doublings` equal steps of x are equal ratios."""
    across_of = math.log2 if doublings else float
    xs = sorted({across_of(x) for line in lines.values() for x in line[0]})
    ys = [y for line in lines.values() for y in line[1]]
    (low, high), (first, last) = (min(ys), max(ys)), (xs[0], xs[-1])
    low, high = low - 0.05 * (high - low), high + 0.05 * (high - low)
    ticks = xs if doublings else [first + (last - first) * step / STEPS for step in range(STEPS + 1)]

    def place(x: float, y: float) -> tuple[float, float]:
        across = LEFT + (x - first) / (last - first or 1) * (WIDTH - LEFT - RIGHT)
        return round(across, 1), round(HEIGHT - BOTTOM - (y - low) / (high - low or 1) * (HEIGHT - BOTTOM - TOP), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        ' font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{LEFT}" y="22" font-size="14">{escape(title)}</text>',
        f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 12}" text-anchor="middle">{escape(below)}</text>',
    ]
    for step in range(STEPS + 1):
        y = low + (high - low) * step / STEPS
        (left, up), (right, _) = place(first, y), place(last, y)
        parts.append(f'<line x1="{left}" y1="{up}" x2="{right}" y2="{up}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{left - 6}" y="{up + 4}" text-anchor="end">{y:.3f}</text>')
    for tick in ticks:
        said = 2**tick if doublings else tick
        parts.append(
            f'<text x="{place(tick, low)[0]}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{said:,.0f}</text>'
        )
    named_at: list[float] = []  # heights of the names so far, of which none covers another
    for (name, values), colour in zip(lines.items(), COLOURS, strict=False):
        points = [place(across_of(x), y) for x, y in zip(*values, strict=True)]
        path = " ".join(f"{x},{y}" for x, y in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        end_x, end_y = points[-1]
        while any(abs(end_y - other) < LINE for other in named_at):
            end_y = round(end_y + 1, 1)
        named_at.append(end_y)
        parts.append(f'<text x="{end_x + 6}" y="{end_y + 4}" fill="{colour}">{escape(name)}</text>')
    return "\n".join([*parts, "</svg>", ""])
