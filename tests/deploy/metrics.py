"""The metrics of toolvane as its sources register them: name as scraped, type, help, labels. The live tests compare this with
a real scrape, so that it cannot miss or invent one."""

import re

from tools import REPO

SOURCES = REPO / "src" / "telemetry"
PREFIX = "toolvane_"


def families():
    """All families by the name that a scrape shows in its TYPE line: (type, help, labels)."""
    return dict(sorted([*_registered(), *_sampled(), *_process()]))


def _labels():
    text = (SOURCES / "labels.rs").read_text()
    found = re.findall(r"^    (\w+) \{ ([^}]*) \}$", text, re.MULTILINE)
    return {name: tuple(field.split(":")[0].strip() for field in fields.split(",")) for name, fields in found}


def _help(words):
    return re.sub(r"\s*\\\n\s*", " ", words).rstrip(".") + "."


def _registered():
    text = (SOURCES / "metrics.rs").read_text()
    labels = _labels()
    fields = dict(re.findall(r"pub\(super\) (\w+): ([^\n]+),\n", text))
    yield f"{PREFIX}build_info", ("gauge", "The running build.", labels["Build"])
    made = re.findall(
        r"(\w+):\s*r\s*\.(counter|gauge|time|counters|gauges|seconds|family)\(\s*\"(\w+)\",\s*\"([^\"]*)\",?\s*\)", text
    )
    for field, kind, name, words in made:
        of = re.search(r"labels::(\w+)", fields[field])
        if kind == "family":
            kind = "gauges" if "Level" in fields[field] else "counters"
        yield (
            PREFIX
            + name
            + {"counter": "_total", "counters": "_total", "time": "_seconds", "seconds": "_seconds"}.get(kind, ""),
            (
                {"seconds": "histogram", "counter": "counter", "counters": "counter"}.get(kind, "gauge"),
                _help(words),
                labels[of[1]] if of else (),
            ),
        )


def _sampled():
    text = (SOURCES / "sample.rs").read_text()
    labels = _labels()
    shown = {
        "tool_state": labels["ToolStateLabels"],
        "tool_state_since_timestamp": labels["Tool"],
        "cooldowns_active": labels["BackendClassification"],
        "tools_hidden": labels["BackendReason"],
        "integration_state": labels["IntegrationStateLabels"],
    }
    for name, words, unit in re.findall(r'\(\s*"(\w+)",\s*"([^"]*)",\s*(None|Some\(Unit::\w+\))\s*\)', text):
        yield PREFIX + name + _unit(unit), ("gauge", _help(words), shown.get(name, ()))
    counters = re.findall(r'\("(\w+)", "([^"]*)", stats\.\w+\)', text) + re.findall(r'=\s*\("(\w+)", "([^"]*)"\);', text)
    for name, words in counters:
        yield f"{PREFIX}{name}_total", ("counter", _help(words), ())


def _process():
    text = (SOURCES / "process.rs").read_text()
    units = {"seconds.as_ref()": "_seconds", "bytes.as_ref()": "_bytes", "None": ""}
    made = re.findall(r'\("(process_\w+)", "([^"]*)", ([\w.()]+)\),\s*&(\w+)::new', text)
    for name, words, unit, kind in made:
        counter = kind == "ConstCounter"
        yield name + units[unit] + ("_total" if counter else ""), ("counter" if counter else "gauge", _help(words), ())


def _unit(unit):
    found = re.search(r"Unit::(\w+)", unit)
    return f"_{found[1].lower()}" if found else ""


def read(text):
    """Families of a scrape in Prometheus' text form, by the same names: (type, help)."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
    words = dict(re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE))
    return {name: (kind, words[name]) for name, kind in kinds.items()}
