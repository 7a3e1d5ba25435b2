"""What dashboards and rules ask Prometheus: every expression, where it stands, and which metrics it names."""

import json
import re

import yaml
from tools import REPO

DASHBOARDS = sorted((REPO / "dashboards" / "grafana").glob("*.json"))
RULES = sorted((REPO / "dashboards" / "rules").glob("*.yaml"))
METRIC = re.compile(r"\b(?:toolvane|process)_[a-z0-9_]+\b")
RECORDED = re.compile(r"\b\w+:\w+:\w+\b")


def dashboards():
    return {file.stem: json.loads(file.read_text()) for file in DASHBOARDS}


def panels():
    """Every panel but rows: dashboard and panel."""
    for dashboard in dashboards().values():
        for panel in dashboard["panels"]:
            if panel["type"] != "row":
                yield dashboard, panel


def panel_expressions():
    for dashboard, panel in panels():
        for target in panel["targets"]:
            yield f"{dashboard['uid']}: {panel['title']} {target['refId']}", target["expr"]


def rule_expressions():
    for file in RULES:
        for group in yaml.safe_load(file.read_text())["groups"]:
            for rule in group["rules"]:
                yield rule.get("alert") or rule["record"], rule["expr"]


def variable_queries():
    for dashboard in dashboards().values():
        for variable in dashboard["templating"]["list"]:
            if variable["type"] == "query":
                yield f"{dashboard['uid']}: ${variable['name']}", variable["query"]["query"]


def metrics_in(expression):
    """Names of series without what histograms and counters append."""
    return {base(name) for name in METRIC.findall(RECORDED.sub("", expression))}


def base(name):
    return re.sub(r"_(bucket|sum|count)$", "", name)


def filled(expression, interval="20s", span="1m", **variables):
    """As Grafana asks it: variables replaced, `.*` for all that are not given."""
    text = expression.replace("$__rate_interval", interval).replace("$__range", span).replace("$__interval", interval)
    return re.sub(r"\$(\w+)", lambda found: variables.get(found[1], ".*"), text)


def watched(expression):
    """What an alert looks at: its expression without the comparison that makes it fire."""
    return re.sub(r"\s*(==|>|<|>=|<=|!=)\s*[\d.]+\s*$", "", expression.strip())


def label_values(query):
    """The selector and the label of Grafana's `label_values(selector, label)`."""
    selector, label = query.removeprefix("label_values(").removesuffix(")").rsplit(", ", 1)
    return selector, label
