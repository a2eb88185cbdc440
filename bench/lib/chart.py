"""A section of the comparison as a picture: SVG, text as text.

Ours is the line at 1; a bar says how many times worse another one is, on a
logarithmic scale, and one to the left of the line that it is better; a grey one
is even with ours.  The thin line on a bar goes from quartile to quartile.
"""

import math
from xml.sax.saxutils import escape

from lib import compare

WIDTH = 760
NAMES, LEFT, RIGHT = 178, 190, 568      # where names end, and the bars are
VALUES, RATIOS = 668, 744               # where these end
TOP, LINE, HEAD, GAP = 80, 19, 22, 8
BAR = 11
LONGEST = 64                            # characters of a reason

STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif;
  fill: #24292f; }
.back { fill: #ffffff; stroke: #d0d7de; }
.title { font-size: 15px; font-weight: 600; }
.row { font-weight: 600; }
.soft { fill: #57606a; }
.small { font-size: 11px; }
.end { text-anchor: end; }
.middle { text-anchor: middle; }
.grid { stroke: #d8dee4; }
.one { stroke: #1a7f4b; stroke-width: 1.5; }
.ours { fill: #1a7f4b; font-weight: 600; }
.worse { fill: #5b8dd6; }
.better { fill: #d9822b; }
.even { fill: #8c959f; }
.open { fill-opacity: 0.45; }
.spread { stroke: #24292f; stroke-opacity: 0.75; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .back { fill: #0d1117; stroke: #30363d; }
  .soft { fill: #9198a1; }
  .grid { stroke: #30363d; }
  .one { stroke: #3fb27f; }
  .ours { fill: #3fb27f; }
  .worse { fill: #4f7fc4; }
  .spread { stroke: #e6edf3; }
}
"""


class Scale:
    """From ratios to places, with room for all of them."""

    def __init__(self, ratios):
        self.low = math.floor(math.log10(min([1, *ratios])))
        self.high = max(1, math.ceil(math.log10(max([1, *ratios]))))

    def x(self, ratio):
        share = (math.log10(ratio) - self.low) / (self.high - self.low)
        return LEFT + min(1, max(0, share)) * (RIGHT - LEFT)

    def ticks(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


class Picture:
    def __init__(self):
        self.parts = []

    def add(self, name, content=None, **attributes):
        words = "".join(
            f' {key.rstrip("_").replace("_", "-")}='
            f'"{value if isinstance(value, str) else round(value, 1)}"'
            for key, value in attributes.items())
        end = "/>" if content is None else f">{escape(content)}</{name}>"
        self.parts.append(f"<{name}{words}{end}")

    def text(self, x, y, words, kind):
        self.add("text", words, x=x, y=y, class_=kind)

    def whisker(self, scale, low, high, y):
        self.add("line", x1=scale.x(low), x2=scale.x(high), y1=y, y2=y,
                 class_="spread")


def draw_axis(picture, scale):
    for tick in scale.ticks():
        picture.text(scale.x(tick), TOP - 12,
                     "as ours" if tick == 1 else f"{tick:g}\u00d7",
                     "small soft middle")


def draw_grid(picture, scale, top, bottom):
    """Behind the bars of one row."""
    for tick in scale.ticks():
        x = scale.x(tick)
        picture.add("line", x1=x, x2=x, y1=top, y2=bottom,
                    class_="one" if tick == 1 else "grid")


def draw_ours(picture, scale, row, y):
    picture.text(NAMES, y, compare.OURS, "end ours")
    middle = y - BAR / 2 + 2
    if row.ours["low"] < row.ours["high"]:
        picture.whisker(scale, *sorted(row.times(row.ours[which])
                                       for which in ("low", "high")), middle)
    picture.add("circle", cx=scale.x(1), cy=middle, r=3.5, class_="ours")
    picture.text(VALUES, y, compare.amount(row.ours["median"], row.unit),
                 "end ours")


def draw_peer(picture, scale, row, peer, y):
    picture.text(NAMES, y, peer.name, "end")
    if peer.ratio is None:
        words = f"cannot: {peer.figure['cannot']}"
        if len(words) > LONGEST:
            words = words[:LONGEST - 1].rstrip() + "\u2026"
        picture.text(scale.x(1) + 6, y, words, "soft")
        return
    if peer.unknown():
        picture.text(scale.x(1) + 6, y, "stopped too soon to tell", "soft")
        picture.text(VALUES, y, peer.text(), "soft end")
        return
    left, right = sorted((scale.x(1), scale.x(peer.ratio)))
    kind = ("even" if peer.even() else "worse" if peer.ratio >= 1
            else "better")
    picture.add("rect", x=left, y=y - BAR + 2, width=max(right - left, 1),
                height=BAR, rx=2,
                class_=kind + (" open" if peer.bound else ""))
    if not peer.bound and peer.figure["low"] < peer.figure["high"]:
        picture.whisker(scale, *sorted(row.times(peer.figure[which])
                                       for which in ("low", "high")),
                        y - BAR / 2 + 2)
    picture.text(VALUES, y, peer.text(), "end")
    picture.text(RATIOS, y, peer.times_text(), "soft end")


def draw_row(picture, scale, row, top):
    """Where the next one begins."""
    picture.text(12, top + 14, row.title.replace("`", ""), "row")
    lines = top + HEAD
    bottom = lines + LINE * (len(row.peers) + 1)
    draw_grid(picture, scale, lines - 1, bottom - 1)
    draw_ours(picture, scale, row, lines + 13)
    for number, peer in enumerate(row.peers, 1):
        draw_peer(picture, scale, row, peer, lines + LINE * number + 13)
    return bottom + GAP


def svg(title, rows):
    """The picture of these rows; None if nobody is compared in them."""
    rows = [row for row in rows if row.peers]
    ratios = [peer.ratio for row in rows for peer in row.peers
              if peer.ratio and not peer.unknown()]
    if not ratios:
        return None
    scale, picture = Scale(ratios), Picture()
    picture.text(12, 26, title, "title")
    picture.text(12, 44, "How many times worse than remote-sandbox-mcp "
                 "(logarithmic); left of its line is better than it.",
                 "small soft")
    draw_axis(picture, scale)
    bottom = TOP
    for row in rows:
        bottom = draw_row(picture, scale, row, bottom)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
        f'height="{bottom}" viewBox="0 0 {WIDTH} {bottom}" role="img">',
        f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>",
        f'<rect class="back" x="0.5" y="0.5" width="{WIDTH - 1}" '
        f'height="{bottom - 1}" rx="6"/>',
        *picture.parts, "</svg>"]) + "\n"
