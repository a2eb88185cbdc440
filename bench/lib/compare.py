"""From what benchmarks recorded (record.py) to who is ahead of whom."""

OURS = "remote-sandbox-mcp"


def amount(value, unit):
    """In three digits or so, as people write it."""
    if unit == "ms" and value >= 1000:
        value, unit = value / 1000, "s"
    elif unit == "s" and value < 0.1:
        value, unit = value * 1000, "ms"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:.{digits}f} {unit}"


def times(ratio):
    digits = 0 if ratio >= 10 else 1 if ratio >= 2 else 2
    return f"{ratio:.{digits}f}\u00d7"


class Peer:
    """Another one in a row.  Its ratio says how many times worse it is; None
    if it has no figure."""

    def __init__(self, row, name, figure):
        self.row, self.name, self.figure = row, name, figure
        self.bound = "bound" in figure
        self.value = figure.get("bound", figure.get("median"))
        self.ratio = None if self.value is None else row.times(self.value)

    def even(self):
        """Do the quartiles of the two overlap?  Then another run might well
        turn them round."""
        if "median" not in self.figure:
            return False
        ours = self.row.ours
        return (self.figure["low"] <= ours["high"]
                and ours["low"] <= self.figure["high"])

    def behind(self):
        """Is ours behind it?"""
        return (self.ratio is not None and self.ratio < 1 and not self.bound
                and not self.even())

    def unknown(self):
        """It was stopped before it was slower than ours."""
        return self.bound and self.ratio < 1

    def verdict(self):
        if self.unknown():
            return "unknown"
        if self.even():
            return "even"
        return "BEHIND" if self.behind() else "ahead"

    def text(self):
        if self.ratio is None:
            return "cannot"
        sign = "" if not self.bound else "< " if self.row.more else "> "
        return sign + amount(self.value, self.row.unit)

    def times_text(self):
        return ("> " if self.bound else "") + times(self.ratio)


class Row:
    def __init__(self, bench, content):
        self.bench = bench
        self.section, self.title = content["section"], content["title"]
        self.unit, self.more = content["unit"], content["more"]
        self.ours = content["figures"][OURS]
        self.peers = [Peer(self, name, figure)
                      for name, figure in content["figures"].items()
                      if name != OURS]

    def times(self, value):
        """How many times worse than ours."""
        ours = self.ours["median"]
        return ours / value if self.more else value / ours

    def best(self):
        """The best of the others, or None."""
        found = [peer for peer in self.peers
                 if peer.ratio is not None and not peer.unknown()]
        return min(found, key=lambda peer: peer.ratio, default=None)

    def behind(self):
        return [peer for peer in self.peers if peer.behind()]

    def verdict(self):
        if not self.peers:
            return "alone"
        if self.behind():
            return "behind"
        if any(peer.unknown() for peer in self.peers):
            return "unknown"
        return "even" if any(peer.even() for peer in self.peers) else "ahead"


def spread(figure, unit):
    """The quartiles, where they differ."""
    if "median" not in figure:
        return ""
    low, high = (amount(figure[which], unit) for which in ("low", "high"))
    return f"{low} to {high}" if low != high else ""


def sections(records):
    """{title: rows}, in order."""
    found = {}
    for record in records:
        for content in record["rows"]:
            row = Row(record["name"], content)
            found.setdefault(row.section, []).append(row)
    return found
