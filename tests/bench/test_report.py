"""The comparison that bench/report.py makes of made-up figures, and the record
that benchmarks leave (bench/lib/record.py)."""

import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from lib import record, remedies  # noqa: E402  (found by the line above)

OURS = "remote-sandbox-mcp"


def figure(median):
    return {"median": median, "low": median * 0.9, "high": median * 1.1,
            "runs": 5}


def row(title, ours, others, unit="ms", more=False):
    return {"section": "A <section>", "title": title, "unit": unit,
            "more": more, "figures": {OURS: figure(ours), **others}}


def made_up(rows, **more):
    return {"name": "exec", "options": [], "day": "2026-01-01",
            "machine": "Linux x86_64", "processors": 2, "load": 0.1,
            "versions": {OURS: "1.2.3", "rsync": "3.2.7"}, "rows": rows,
            "targets": [], "skipped": {}, **more}


class Report:
    """What comes of a record."""

    def __init__(self, place, content):
        source, self.docs = place / "figures", place / "docs"
        source.mkdir(parents=True)
        (source / "exec.json").write_text(json.dumps(content))
        self.table = subprocess.run(
            [sys.executable, BENCH / "report.py", "--from", source,
             "--docs", self.docs], check=True, text=True,
            capture_output=True).stdout
        self.page = (self.docs / "benchmarks.md").read_text()
        self.charts = {path.name: path.read_text()
                       for path in (self.docs / "charts").iterdir()}

    def under(self, heading):
        """The part of the page below it."""
        return self.page.partition(f"## {heading}\n")[2].partition("\n## ")[0]

    def line(self, *words):
        """The line of the table that has all of these."""
        return next(line for line in self.table.splitlines()
                    if all(word in line for word in words))


def test_a_slower_row_is_called_behind(tmp_path):
    report = Report(tmp_path, made_up([
        row("`quick`", 1, {"other": figure(30)}),
        row("`slow`", 30, {"swift": figure(10)})]))
    assert "30\u00d7" in report.line("other", "ahead")
    assert "0.33\u00d7" in report.line("swift", "BEHIND")
    assert "ahead of all in 1, even with the best in 0, behind one in 1" in (
        report.table)
    behind = report.under("Where we are behind")
    assert "`slow`" in behind and "swift 10.0 ms" in behind
    assert "`quick`" not in behind
    assert "| behind |" in report.under("In short")


def test_where_quartiles_overlap_neither_is_ahead(tmp_path):
    report = Report(tmp_path, made_up([
        row("`close`", 100, {"swift": figure(95), "slow": figure(110)}),
        row("`apart`", 100, {"swift": figure(75), "near": figure(105)}),
        row("rate", 100, {"fast": figure(110)}, "MB/s", True),
        row("size", 100, {"same": {"median": 100, "low": 100, "high": 100,
                                   "runs": 1}})]))
    assert report.line("swift", "95.0 ms", "even")
    assert report.line("slow", "110 ms", "even")
    assert report.line("swift", "75.0 ms", "BEHIND")
    assert report.line("fast", "even") and report.line("same", "even")
    assert "ahead of all in 0, even with the best in 3, behind one in 1" in (
        report.table)
    behind = report.under("Where we are behind")
    assert "`apart`" in behind and "swift 75.0 ms" in behind
    assert "near" not in behind and "`close`" not in behind
    assert "rate" not in behind
    assert "| even |" in report.under("In short")
    assert 'class="even"' in report.charts["a-section.svg"]


def test_where_more_is_better_the_larger_one_is_ahead(tmp_path):
    report = Report(tmp_path, made_up([
        row("speed", 200, {"slow": figure(50), "fast": figure(400)},
            "MB/s", True)]))
    assert "4.0\u00d7" in report.line("slow", "ahead")
    assert "0.50\u00d7" in report.line("fast", "BEHIND")


def test_who_was_stopped_too_soon_is_neither_ahead_nor_behind(tmp_path):
    report = Report(tmp_path, made_up([
        row("x", 50, {"stopped": {"bound": 10}, "slow": figure(100)}, "s")]))
    assert report.line("stopped", "unknown")
    assert "behind one in 0, unknown in 1" in report.table
    assert "Nowhere" in report.under("Where we are behind")
    assert "stopped too soon to tell" in report.charts["a-section.svg"]


def test_every_remedy_is_for_something_that_is_measured(tmp_path):
    for bench, part, words in remedies.KNOWN:
        assert part in (BENCH / f"{bench}.py").read_text(), (bench, part)
        assert remedies.remedy(bench, f"such as {part}", True) == words
    assert "busy" in remedies.remedy("exec", "another", True)
    assert "not known" in remedies.remedy("exec", "another", False)


def test_every_chart_is_xml_and_has_its_text(tmp_path):
    content = made_up([
        row("`a` & b", 1, {"one | two": figure(30), "late": {"bound": 900},
                           "weak": {"cannot": "no <such> tool"}}),
        row("alone", 5, {})])
    report = Report(tmp_path / "first", content)
    assert list(report.charts) == ["a-section.svg"]
    chart = report.charts["a-section.svg"]
    words = [text.text for text in xml.etree.ElementTree.fromstring(chart).iter(
        "{http://www.w3.org/2000/svg}text")]
    for wanted in ("A <section>", "a & b", OURS, "one | two", "30.0 ms",
                   "> 900 ms", "cannot: no <such> tool"):
        assert wanted in words
    assert "alone" not in words
    again = Report(tmp_path / "again", content)
    assert again.charts == report.charts and again.page == report.page


def test_those_who_cannot_are_named_with_the_reason(tmp_path):
    report = Report(tmp_path, made_up(
        [row("trees", 1, {"weak": {"cannot": "moves single files only"}})],
        skipped={"gone": "not installed"}))
    absent = report.under("Who cannot, or is not to be had")
    assert "weak" in absent and "moves single files only" in absent
    assert "gone" in absent and "not installed" in absent
    assert "Nowhere" in report.under("Where we are behind")


def test_missed_targets_busy_machines_and_odd_options_are_told(tmp_path):
    report = Report(tmp_path, made_up(
        [row("x", 1, {"other": figure(2)})], load=7.5,
        options=["--rounds", "2"], targets=[
            {"text": "at most 3", "reached": True},
            {"text": "at most 1/50", "reached": False}]))
    behind = report.under("Where we are behind")
    assert "at most 1/50" in behind and "at most 3" not in behind
    assert "1 targets missed" in report.table
    conditions = report.under("Conditions")
    assert "busy" in conditions and "rsync 3.2.7" in conditions
    assert "./dev bench exec --rounds 2" in conditions


def test_other_work_is_that_of_now():
    rest = record.at_work(0.2)
    burner = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        busy = max(record.at_work(0.5) for _ in range(3))
    finally:
        burner.kill()
        burner.wait()
    assert 0 <= rest <= os.cpu_count() + 0.01
    assert 0.3 < busy <= os.cpu_count() + 0.01


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "PLACE", tmp_path)
    monkeypatch.setattr(sys, "argv", ["x", "--binary", "y", "--rounds", "2"])
    return record.Record("made")


def test_a_record_has_median_and_quartiles(made, tmp_path):
    made.table("s", "t", "ms", {OURS: [4, 1, 2, 3, 100], "none": []})
    assert made.end({"gone": "why"}) == 0
    content = json.loads((tmp_path / "made.json").read_text())
    assert content["rows"][0]["figures"] == {
        OURS: {"median": 3, "low": 2, "high": 4, "runs": 5}}
    assert content["options"] == ["--rounds", "2"]
    assert content["skipped"] == {"gone": "why"}
    assert content["processors"] > 0 and "OpenSSH" in content["versions"]


def test_a_missed_target_and_a_wrong_answer_are_told_apart(made):
    made.target("fast", True)
    assert made.end({}) == 0
    made.target("faster", False)
    assert made.end({}) == record.MISSED == 3
    made.must("right", False)
    assert made.end({}) == 1
