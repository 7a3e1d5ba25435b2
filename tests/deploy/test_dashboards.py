"""Dashboards are well-formed, are what their generator writes, and ask for what exists."""

import itertools
import json
import re
import subprocess
import sys

import metrics
import promexpr
import pytest
from tools import NODE, REPO, sh


def values_of(key, tree):
    if isinstance(tree, dict):
        yield from (value for name, value in tree.items() if name == key)
    members = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ()
    for member in members:
        yield from values_of(key, member)


def test_the_files_are_what_the_generator_writes():
    done = subprocess.run(
        [sys.executable, REPO / "dashboards" / "generate.py", "--check"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_names_and_numbers_are_unique():
    found = list(promexpr.dashboards().values())
    assert len({d["uid"] for d in found}) == len({d["title"] for d in found}) == len(found) == 3
    for dashboard in found:
        numbers = [panel["id"] for panel in dashboard["panels"]]
        assert len(set(numbers)) == len(numbers)
        assert dashboard["id"] is None and dashboard["uid"].startswith("toolvane-")


def test_no_panel_overlaps_another_or_leaves_the_grid():
    for dashboard in promexpr.dashboards().values():
        boxes = [(p["title"], *(p["gridPos"][key] for key in "xywh")) for p in dashboard["panels"]]
        assert all(x >= 0 and x + w <= 24 for _, x, _, w, _ in boxes)
        for (a, ax, ay, aw, ah), (b, bx, by, bw, bh) in itertools.combinations(boxes, 2):
            apart = ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay
            assert apart, f"{dashboard['uid']}: {a} and {b} overlap"


def test_no_data_source_is_wired_in():
    for dashboard in promexpr.dashboards().values():
        sources = list(values_of("datasource", dashboard))
        assert sources and all(source["uid"] == "${datasource}" for source in sources)
        assert "__inputs" not in dashboard
        assert dashboard["templating"]["list"][0]["type"] == "datasource"


def test_every_panel_says_something_and_uses_only_variables_that_exist():
    for dashboard, panel in promexpr.panels():
        known = {v["name"] for v in dashboard["templating"]["list"]}
        for target in panel["targets"]:
            used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval", "__range"}
            assert used <= known, panel["title"]
            assert used, f"{panel['title']} {target['refId']} cannot be narrowed"
        assert panel["title"] and panel["fieldConfig"]["defaults"]["unit"]


def test_every_metric_that_is_asked_for_exists():
    exist = set(metrics.families())
    expressions = [*promexpr.panel_expressions(), *promexpr.rule_expressions(), *promexpr.variable_queries()]
    for where, expression in expressions:
        assert promexpr.metrics_in(expression) <= exist, where


def test_every_metric_that_exists_is_on_a_dashboard():
    shown = set().union(*(promexpr.metrics_in(expression) for _, expression in promexpr.panel_expressions()))
    assert set(metrics.families()) - shown == set()


def test_links_between_dashboards_lead_somewhere():
    uids = {dashboard["uid"] for dashboard in promexpr.dashboards().values()}
    for dashboard in promexpr.dashboards().values():
        for uid in re.findall(r"/d/([\w-]+)", json.dumps(dashboard)):
            assert uid in uids


# String enums of the schema take their values as plain strings.
LOOSE = """
type Loose<T> = T extends string ? `${T}` : T extends (infer U)[] ? Loose<U>[]
  : T extends object ? { [K in keyof T]: Loose<T[K]> } : T;
"""


def typed(name, text, ok):
    source = NODE / f"{name}.ts"
    head = "import type { Dashboard } from '@grafana/schema';"
    source.write_text(f"{head}\nexport const dashboard = {text} satisfies Loose<Dashboard>;\n{LOOSE}")
    flags = ["--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext"]
    sh("npx", "tsc", *flags, "--moduleResolution", "bundler", source, cwd=NODE, ok=ok)


@pytest.mark.verify
def test_grafanas_own_schema_takes_them():
    for name, dashboard in promexpr.dashboards().items():
        typed(name, json.dumps(dashboard, indent=1), ok=(0,))


@pytest.mark.verify
@pytest.mark.parametrize(
    ("right", "wrong"), [('"gridPos"', '"gridPosition"'), ('"schemaVersion": 42', '"schemaVersion": "42"')]
)
def test_grafanas_own_schema_would_find_a_mistake(right, wrong):
    text = json.dumps(promexpr.dashboards()["tool"], indent=1)
    assert right in text
    typed("broken", text.replace(right, wrong, 1), ok=(1, 2))
