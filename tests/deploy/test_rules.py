"""Alerts and recording rules are what Prometheus takes, each alert is proven by cases and leads to a page."""

import re

import yaml
from tools import REPO, promtool, sh

RULES = sorted((REPO / "dashboards" / "rules").glob("*.yaml"))
CASES = sorted((REPO / "dashboards" / "tests").glob("*.yaml"))


def rules(kind):
    groups = [group for file in RULES for group in yaml.safe_load(file.read_text())["groups"]]
    return [rule for group in groups for rule in group["rules"] if kind in rule]


def test_promtool_finds_nothing_in_the_rules():
    assert len(RULES) == 2
    sh(promtool(), "check", "rules", "--lint=all", "--lint-fatal", *RULES)


def test_every_case_of_the_rules_holds():
    sh(promtool(), "test", "rules", *CASES)


def test_every_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = [
        t
        for file in CASES
        for test in yaml.safe_load(file.read_text())["tests"]
        for t in test.get("alert_rule_test", [])
    ]
    alerts = {rule["alert"] for rule in rules("alert")}
    assert len(alerts) >= 10
    assert {case["alertname"] for case in cases if case["exp_alerts"]} == alerts
    assert {case["alertname"] for case in cases if not case["exp_alerts"]} == alerts


def test_every_recording_rule_has_a_case_and_a_name_of_level_metric_and_operation():
    tests = [
        t
        for file in CASES
        for test in yaml.safe_load(file.read_text())["tests"]
        for t in test.get("promql_expr_test", [])
    ]
    names = {rule["record"] for rule in rules("record")}
    assert {test["expr"] for test in tests} == names
    assert all(re.fullmatch(r"(tool|backend):toolvane_\w+:\w+", name) for name in names)


def test_every_alert_says_what_it_means_and_leads_to_a_page_that_names_it():
    for rule in rules("alert"):
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert {"summary", "description", "runbook_url"} == set(rule["annotations"])
        page = REPO / rule["annotations"]["runbook_url"]
        assert page.exists(), page
        assert f"{rule['alert']}" in page.read_text()


def test_every_runbook_belongs_to_an_alert_and_is_listed():
    pages = {file.name for file in (REPO / "docs" / "runbooks").glob("*.md")} - {"README.md"}
    assert pages == {rule["annotations"]["runbook_url"].rsplit("/", 1)[1] for rule in rules("alert")}
    listed = (REPO / "docs" / "runbooks" / "README.md").read_text()
    assert all(f"({page})" in listed for page in pages)
    assert all(rule["alert"] in listed for rule in rules("alert"))


def test_the_compose_prometheus_loads_a_configuration_that_it_can_read(tmp_path):
    config = yaml.safe_load((REPO / "deploy" / "monitoring" / "prometheus.yml").read_text())
    # Keys that the promtool of the test is too old to know.
    for scrape in config["scrape_configs"]:
        scrape.pop("scrape_native_histograms")
        scrape.pop("always_scrape_classic_histograms")
    file = tmp_path / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    (tmp_path / "rules").symlink_to(REPO / "dashboards" / "rules")
    sh(promtool(), "check", "config", file)
