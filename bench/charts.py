# SPDX-License-Identifier: Apache-2.0
"""Draws charts as plain SVG, 800 wide: bars about a line at 1, and lines over two logarithmic axes. Each chart is a card, light or dark
like the reader's system, with a title and a description for screen readers. Owns geometry and colors; report.py supplies the data."""
import math
from html import escape

WIDTH, MARGIN, LINE = 800, 16, 20
CHARACTER = 7.1  # the widest of the usual sans-serif faces at 12 px, on average
LIGHT = {"card": "#ffffff", "edge": "#d0d7de", "text": "#1f2328", "quiet": "#59636e", "grid": "#e6e9ec", "one": "#1f2328",
         "good": "#2f6fb5", "bad": "#c4621d", "ask": "#8a3ffc", "s0": "#2f6fb5", "s1": "#c4621d", "s2": "#3b8a4e", "s3": "#8a5ac2"}
DARK = {"card": "#0d1117", "edge": "#3d444d", "text": "#f0f6fc", "quiet": "#9aa4af", "grid": "#262c34", "one": "#f0f6fc",
        "good": "#5aa2ee", "bad": "#ee8f45", "ask": "#be95ff", "s0": "#5aa2ee", "s1": "#ee8f45", "s2": "#62bd76", "s3": "#b990ee"}
FILLED, DRAWN = ("text", "quiet", "good", "bad", "s0", "s1", "s2", "s3"), ("grid", "one", "ask", "s0", "s1", "s2", "s3")


def style():
    def rules(colors):
        return ("".join(f".{name}{{fill:{colors[name]}}}" for name in FILLED) +
                "".join(f".{name}-line{{stroke:{colors[name]}}}" for name in DRAWN) +
                f".card{{fill:{colors['card']};stroke:{colors['edge']}}}")
    return ("text{font:12px system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}.head{font-weight:600}.title{font-size:15px;"
            "font-weight:600}.small{font-size:11px}path,line,polyline{fill:none}" + rules(LIGHT) +
            f"@media(prefers-color-scheme:dark){{{rules(DARK)}}}")


def text(x, y, words, classes="text", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{classes}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1, y1, x2, y2, classes, width=1.0, dashes=""):
    more = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{classes}" stroke-width="{width:g}"{more}/>'


def picture(title, description, subtitle, height, parts):
    head = (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0f}" width="{WIDTH}" height="{height:.0f}" role="img" '
            f'aria-labelledby="title desc">\n<title id="title">{escape(title)}</title>\n<desc id="desc">{escape(description)}</desc>\n'
            f"<style>{style()}</style>\n"
            f'<rect class="card" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1:.0f}" rx="8"/>')
    return "\n".join([head, text(MARGIN, 28, title, "text title"), text(MARGIN, 48, subtitle, "quiet"), *parts, "</svg>", ""])


def shown(value):
    """Two or three digits, without an exponent."""
    if value < 0.1:
        return f"{value:.{1 - math.floor(math.log10(value))}f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 100 else f"{value:,.0f}"


class Scale:
    """From values to x or y."""

    def __init__(self, low, high, begin, end, logarithmic):
        self.of = math.log10 if logarithmic else float
        self.low, self.span = self.of(low), self.of(high) - self.of(low)
        self.begin, self.length = begin, end - begin

    def __call__(self, value):
        return self.begin + (self.of(value) - self.low) / self.span * self.length


def ticks_of(low, high):
    """1, 2 and 5 times powers of ten; fewer where there would be too many."""
    steps = [(1, 2, 5), (1, 3), (1,)]
    for mantissas in steps:
        ticks = [m * 10.0 ** e for e in range(-6, 7) for m in mantissas if low <= m * 10.0 ** e <= high]
        if len(ticks) <= 8:
            break
    return ticks


def bars(title, description, subtitle, groups, logarithmic):
    """groups: [(heading, [(label, second label, value, target or None, good)])]. Bars begin at 1 on a logarithmic axis, else at 0. A
    strong line marks 1, a short violet one the target."""
    rows = [row for _, members in groups for row in members]
    second = max(len(row[1]) for row in rows) * CHARACTER
    left = MARGIN + max(len(row[0]) for row in rows) * CHARACTER + 10 + second + 10
    # Leaves room for the value at the end of a bar, on both sides.
    values = [v for row in rows for v in (row[2], row[3]) if v] + [1]
    if logarithmic:
        low, high = min(values) / 1.15, max(max(values) * 1.15, 1.5)
        scale = Scale(low, high, left + 40, WIDTH - MARGIN - 40, True)
        ticks, base = ticks_of(low, high), 1
    else:
        low, high = 0, max(values)
        scale = Scale(low, high, left, WIDTH - MARGIN - 44, False)
        ticks, base = [i / 4 for i in range(int(high * 4) + 1)], 0
    top = 84
    bottom = top + sum(LINE * (len(members) + (heading is not None)) + 8 for heading, members in groups)
    parts = []
    for tick in ticks:
        parts.append(line(scale(tick), top - 6, scale(tick), bottom, "grid-line"))
        parts.append(text(scale(tick), top - 12, f"{tick:g}", "quiet small", "middle"))
    y = top
    for heading, members in groups:
        if heading is not None:
            parts.append(text(MARGIN, y + 14, heading, "text head"))
            y += LINE
        previous = None
        for label, other, value, asked, good in members:
            if label != previous:
                parts.append(text(MARGIN, y + 14, label))
            previous = label
            parts.append(text(left - 10, y + 14, other, "quiet", "end"))
            begin, end = sorted((scale(base), scale(value)))
            parts.append(f'<rect class="{"good" if good else "bad"}" x="{begin:.1f}" y="{y + 4:.1f}" width="{max(end - begin, 1):.1f}" '
                         f'height="12" rx="1.5"/>')
            if asked:
                parts.append(line(scale(asked), y + 1, scale(asked), y + 19, "ask-line", 3))
            parts.append(value_label(scale, base, value, [scale(v) for v in (asked, 1) if v], y))
            y += LINE
        y += 8
    parts.append(line(scale(1), top - 6, scale(1), bottom, "one-line", 1.5))
    return picture(title, description, subtitle, bottom + 12, parts)


def value_label(scale, base, value, marks, y):
    """The value at the end of the bar, clear of nearby lines."""
    leftward = value < base
    x = scale(value) + (-5 if leftward else 5)
    room = len(shown(value)) * CHARACTER + 4
    for mark in sorted(marks, reverse=leftward):
        if x - room < mark < x + 3 if leftward else x - 3 < mark < x + room:
            x = mark + (-6 if leftward else 6)
    return text(x, y + 14, shown(value), "text small", "end" if leftward else "start")


MARKERS = {
    "s0": lambda x, y: f'<circle class="s0" cx="{x:.1f}" cy="{y:.1f}" r="4"/>',
    "s1": lambda x, y: f'<rect class="s1" x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"/>',
    "s2": lambda x, y: f'<polygon class="s2" points="{x:.1f},{y - 4.5:.1f} {x + 4.5:.1f},{y + 3.5:.1f} {x - 4.5:.1f},{y + 3.5:.1f}"/>',
    "s3": lambda x, y: f'<polygon class="s3" points="{x:.1f},{y - 5:.1f} {x + 5:.1f},{y:.1f} {x:.1f},{y + 5:.1f} {x - 5:.1f},{y:.1f}"/>',
}


def duration(ms):
    """Formats a power of ten of milliseconds."""
    for unit, size in (("s", 1000), ("ms", 1), ("µs", 1e-3), ("ns", 1e-6)):
        if ms >= size * 0.999:
            return f"{ms / size:g} {unit}"
    return f"{ms:g} ms"


def legend(names, x, y, room):
    """The names in a row, wrapped to as many lines as needed; returns the parts and the height."""
    parts, at, lines = [], x, 1
    for number, name in enumerate(names):
        width = 21 + len(name) * CHARACTER + 16
        if at > x and at + width > x + room:
            at, lines = x, lines + 1
        here = y + (lines - 1) * 18
        parts += [line(at, here - 4, at + 16, here - 4, f"s{number}-line", 2), MARKERS[f"s{number}"](at + 8, here - 4),
                  text(at + 21, here, name)]
        at += width
    return parts, lines * 18


def growth(title, description, subtitle, panels, x_label):
    """panels: [(heading, {name: [(x, ms)]})], side by side over common axes, both logarithmic. x_label: value -> words."""
    points = [p for _, series in panels for all_ in series.values() for p in all_]
    xs = sorted({x for x, _ in points})
    low, high = 10.0 ** math.floor(math.log10(min(y for _, y in points))), 10.0 ** math.ceil(math.log10(max(y for _, y in points)))
    axis, gap = 52, 26
    room = (WIDTH - 2 * MARGIN - axis - gap * (len(panels) - 1)) / len(panels)
    legends = [legend(list(series), 0, 0, room)[1] for _, series in panels]
    top = 76 + max(legends) + 22
    bottom = top + 250
    y_of = Scale(low, high, bottom, top, True)
    decades = [10.0 ** e for e in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    parts = [text(MARGIN + axis - 8, y_of(d) + 4, duration(d), "quiet small", "end") for d in decades]
    for number, (heading, series) in enumerate(panels):
        begin = MARGIN + axis + number * (room + gap)
        x_of = Scale(xs[0], xs[-1], begin + 8, begin + room - 8, True)
        parts.append(text(begin, 76, heading, "text head"))
        parts += legend(list(series), begin, 98, room)[0]
        for d in decades:
            parts.append(line(begin, y_of(d), begin + room, y_of(d), "grid-line"))
        for x in xs:
            parts.append(line(x_of(x), top, x_of(x), bottom, "grid-line"))
            parts.append(text(x_of(x), bottom + 18, x_label(x), "quiet small", "middle"))
        for index, (name, all_) in reversed(list(enumerate(series.items()))):  # the first one on top
            path = " ".join(f"{x_of(x):.1f},{y_of(y):.1f}" for x, y in all_)
            parts.append(f'<polyline class="s{index}-line" points="{path}" stroke-width="{2.5 if index == 0 else 1.8:g}"/>')
            parts += [MARKERS[f"s{index}"](x_of(x), y_of(y)) for x, y in all_]
    return picture(title, description, subtitle, bottom + 34, parts)
