#!/usr/bin/env python3
"""Writes grafana/*.json from what is stated below: which panels, with which expressions, in which rows.

    python3 dashboards/generate.py            writes the files
    python3 dashboards/generate.py --check    fails if they are not what would be written

Panels flow from left to right on Grafana's grid of 24 columns, so that none can overlap another.
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA_VERSION = 42
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
OK, DEGRADED, DOWN = "#56A64B", "#FF9830", "#E02F44"
# Colour is never the only sign: each status has its word.
STATUS = [
    {
        "type": "value",
        "options": {
            "0": {"text": "OK", "color": OK, "index": 0},
            "1": {"text": "DEGRADED", "color": DEGRADED, "index": 1},
            "2": {"text": "DOWN", "color": DOWN, "index": 2},
        },
    }
]


class Panel:
    """One panel: its words, its expressions, and how they are shown."""

    def __init__(self, kind, title, about, *targets, unit="short", width=8, height=8, **more):
        self.kind, self.title, self.about, self.targets = kind, title, about, targets
        self.unit, self.width, self.height, self.more = unit, width, height, more

    def render(self, number, x, y):
        more = dict(self.more)
        defaults = {"unit": self.unit, **more.pop("defaults", {})}
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.about,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "fieldConfig": {"defaults": defaults, "overrides": more.pop("overrides", [])},
            "targets": [
                {"datasource": DATASOURCE, "refId": chr(ord("A") + index), **target}
                for index, target in enumerate(self.targets)
            ],
            **more,
        }


def q(expr, legend="", **more):
    return {"expr": expr, "legendFormat": legend, "range": True, **more}


def now(expr, legend="", **more):
    return {"expr": expr, "legendFormat": legend, "instant": True, "range": False, **more}


def lines(title, about, *targets, unit="short", stacked=False, **more):
    custom = {"drawStyle": "line", "fillOpacity": 10, "showPoints": "never", "lineWidth": 1}
    if stacked:
        custom |= {"fillOpacity": 40, "stacking": {"mode": "normal", "group": "A"}}
    return Panel(
        "timeseries",
        title,
        about,
        *targets,
        unit=unit,
        defaults={"min": 0, "custom": custom},
        options={
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        },
        **more,
    )


def number(title, about, *targets, unit="short", steps=(), decimals=None, **more):
    thresholds = [{"color": OK if steps else "text", "value": None}, *({"color": c, "value": v} for v, c in steps)]
    defaults = {"thresholds": {"mode": "absolute", "steps": thresholds}}
    if decimals is not None:
        defaults["decimals"] = decimals
    return Panel(
        "stat",
        title,
        about,
        *targets,
        unit=unit,
        width=more.pop("width", 3),
        height=more.pop("height", 4),
        defaults=defaults | more.pop("defaults", {}),
        options={
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value",
            "graphMode": "none",
            "textMode": more.pop("text_mode", "value"),
        },
        **more,
    )


def ranking(title, about, target, **more):
    return Panel(
        "bargauge",
        title,
        about,
        target,
        defaults={"min": 0},
        options={
            "displayMode": "basic",
            "orientation": "horizontal",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        },
        **more,
    )


def timeline(title, about, target, **more):
    return Panel(
        "state-timeline",
        title,
        about,
        target,
        defaults={"mappings": STATUS, "custom": {"fillOpacity": 80, "lineWidth": 0}},
        options={"mergeValues": True, "showValue": "auto", "rowHeight": 0.8, "legend": {"showLegend": True}},
        **more,
    )


def quantile(share, metric, selector, by=()):
    """A quantile of a histogram, classic where its buckets are stored, else native."""
    labels, classic = ", ".join(by), ", ".join((*by, "le"))
    rate = f"rate({metric}%s{{{selector}}}[$__rate_interval])"
    native = f"sum by ({labels}) ({rate % ''})" if by else f"sum({rate % ''})"
    return (
        f"histogram_quantile({share}, sum by ({classic}) ({rate % '_bucket'})) or histogram_quantile({share}, {native})"
    )


def rate(metric, selector, by):
    return f"sum by ({by}) (rate({metric}{{{selector}}}[$__rate_interval]))"


def variable(name, label, query, multi=True):
    every = {"allValue": ".*", "current": {"text": "All", "value": "$__all"}} if multi else {}
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": multi,
        "includeAll": multi,
        **every,
    }


DATASOURCE_VARIABLE = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
JOB = variable("job", "Job", "label_values(toolvane_build_info, job)")
INSTANCE = variable("instance", "Sidecar", 'label_values(toolvane_build_info{job=~"$job"}, instance)')
BACKEND = variable("backend", "Backend", 'label_values(toolvane_calls_in_flight{job=~"$job"}, backend)')
HERE_ = 'job=~"$job", instance=~"$instance"'
BACKENDS = f'{HERE_}, backend=~"$backend"'


def overview():
    s = BACKENDS
    state = f'max by (backend, tool) (toolvane_tool_state{{{s}, state="%s"}})'
    to_tool = [
        {
            "title": "This tool",
            "url": "/d/toolvane-tool?var-backend=${__data.fields.backend}&var-tool=${__data.fields.tool}&${__url_time_range}",
        }
    ]
    table = Panel(
        "table",
        "Tools that are not OK",
        "For everybody: the worst entry at PROJECT or wider, over all sidecars. `*` is the whole backend. A click leads to the tool.",
        now(
            f'max by (backend, tool) (toolvane_tool_state{{{s}, state="degraded"}})'
            f' + 2 * max by (backend, tool) (toolvane_tool_state{{{s}, state="down"}}) > 0',
            format="table",
        ),
        now(f"1000 * min by (backend, tool) (toolvane_tool_state_since_timestamp_seconds{{{s}}})", format="table"),
        width=12,
        defaults={"links": to_tool},
        overrides=[
            {"matcher": {"id": "byName", "options": "Status"}, "properties": [{"id": "mappings", "value": STATUS}]},
            {
                "matcher": {"id": "byName", "options": "Since"},
                "properties": [{"id": "unit", "value": "dateTimeFromNow"}],
            },
        ],
        transformations=[
            {"id": "merge", "options": {}},
            {
                "id": "filterByValue",
                "options": {
                    "type": "exclude",
                    "match": "any",
                    "filters": [{"fieldName": "Value #A", "config": {"id": "isNull", "options": {}}}],
                },
            },
            {
                "id": "organize",
                "options": {
                    "excludeByName": {"Time": True},
                    "renameByName": {"Value #A": "Status", "Value #B": "Since"},
                },
            },
        ],
        options={"showHeader": True},
    )
    rows = [
        (
            "Now",
            [
                number("Sidecars", "Sidecars that are scraped.", now(f"count(toolvane_build_info{{{HERE_}}})")),
                number("Draining", "Sidecars that were told to leave.", now(f"sum(toolvane_draining{{{HERE_}}})")),
                number(
                    "Tools OK", "Tools that are OK in every sidecar.", now(f"count({state % 'ok'} == 1) or vector(0)")
                ),
                number(
                    "DEGRADED",
                    "Tools that are intermittent somewhere; calls pass.",
                    now(f"count({state % 'degraded'} == 1) or vector(0)"),
                    steps=[(1, DEGRADED)],
                ),
                number(
                    "DOWN",
                    "Tools that are DOWN somewhere; calls are answered without the backend.",
                    now(f"count({state % 'down'} == 1) or vector(0)"),
                    steps=[(1, DOWN)],
                ),
                number(
                    "Calls",
                    "Judged calls a second.",
                    now(f"sum(rate(toolvane_calls_total{{{s}}}[$__rate_interval]))"),
                    unit="reqps",
                    decimals=1,
                ),
                number(
                    "Short-circuits",
                    "Calls a second that were answered without the backend.",
                    now(f"sum(rate(toolvane_short_circuits_total{{{s}}}[$__rate_interval]))"),
                    unit="reqps",
                    decimals=1,
                ),
                number(
                    "Failing",
                    "Share of judged calls that failed.",
                    now(
                        f'sum(rate(toolvane_calls_total{{{s}, outcome="failure"}}[$__rate_interval])) / sum(rate(toolvane_calls_total{{{s}}}[$__rate_interval]))'
                    ),
                    unit="percentunit",
                    decimals=1,
                    steps=[(0.05, DEGRADED), (0.25, DOWN)],
                ),
                table,
                timeline(
                    "Status of tools",
                    "The worst that any sidecar says of each tool.",
                    q(
                        f'max by (backend, tool) (toolvane_tool_state{{{s}, state="degraded"}}) + 2 * max by (backend, tool) (toolvane_tool_state{{{s}, state="down"}})',
                        "{{backend}} {{tool}}",
                    ),
                    width=12,
                ),
            ],
        ),
        (
            "Calls",
            [
                lines(
                    "Calls by outcome",
                    "success clears; failure counts against the tool; neutral (a 403, bad arguments) does neither; abandoned says nothing.",
                    q(rate("toolvane_calls_total", s, "outcome"), "{{outcome}}"),
                    unit="reqps",
                    stacked=True,
                ),
                lines(
                    "Calls by tool",
                    "The ten that are called most.",
                    q(f"topk(10, {rate('toolvane_calls_total', s, 'tool')})", "{{tool}}"),
                    unit="reqps",
                ),
                lines(
                    "Short-circuits by reason",
                    "Calls answered without the backend.",
                    q(rate("toolvane_short_circuits_total", s, "reason"), "{{reason}}"),
                    unit="reqps",
                    stacked=True,
                ),
                lines(
                    "Error classes",
                    "Dispatch codes of judged calls: not there, not reached, answered with an error, switched off.",
                    q(rate("toolvane_calls_total", s + ', code!="none"', "code"), "{{code}}"),
                    unit="reqps",
                ),
                lines(
                    "Failures by classification",
                    "What the rules made of them.",
                    q(rate("toolvane_failures_total", s, "classification"), "{{classification}}"),
                    unit="reqps",
                ),
                ranking(
                    "Top failing signatures",
                    "Over the time shown.",
                    now(
                        f"topk(10, sum by (signature) (increase(toolvane_failures_total{{{s}}}[$__range])))",
                        "{{signature}}",
                    ),
                ),
            ],
        ),
        (
            "Latency",
            [
                lines(
                    "p95 against the backend's",
                    "The whole call, own answers included, and what of it the backend took. The distance is what toolvane costs.",
                    q(quantile(0.95, "toolvane_call_duration_seconds", s), "call", exemplar=True),
                    q(quantile(0.95, "toolvane_upstream_duration_seconds", s), "backend"),
                    unit="s",
                    width=12,
                ),
                lines(
                    "p95 by tool",
                    "The ten that take longest.",
                    q(
                        f"topk(10, {quantile(0.95, 'toolvane_call_duration_seconds', s, ('tool',))})",
                        "{{tool}}",
                        exemplar=True,
                    ),
                    unit="s",
                    width=12,
                ),
            ],
        ),
        (
            "Health",
            [
                lines(
                    "Changes of status",
                    "Of health documents of all scopes, by what they became.",
                    q(
                        f"sum by (scope, to) (increase(toolvane_transitions_total{{{s}}}[$__rate_interval]))",
                        "{{scope}} → {{to}}",
                    ),
                ),
                lines(
                    "Trials",
                    "The one call at a time that a tool which is DOWN gets.",
                    q(f"sum by (result) (increase(toolvane_trials_total{{{s}}}[$__rate_interval]))", "{{result}}"),
                ),
                lines(
                    "Probes",
                    "Connects and calls that toolvane makes itself.",
                    q(rate("toolvane_probes_total", s, "result"), "{{result}}"),
                    unit="reqps",
                ),
                lines(
                    "Cooldowns",
                    "Whose deadline lies ahead, by what the failure was.",
                    q(f"sum by (classification) (toolvane_cooldowns_active{{{s}}})", "{{classification}}"),
                ),
                lines(
                    "Cooldowns started",
                    "",
                    q(rate("toolvane_cooldowns_started_total", s, "classification"), "{{classification}}"),
                    unit="cps",
                ),
                lines(
                    "Diagnosis",
                    "Unclear failures that asked for a diagnosis: claimed, or refused since one is under way.",
                    q(rate("toolvane_diagnosis_claims_total", s, "result"), "{{result}}"),
                    unit="cps",
                ),
            ],
        ),
        (
            "Tool lists",
            [
                lines(
                    "Lists by what was done",
                    "unchanged is byte for byte; last_good was answered for a backend that is gone.",
                    q(rate("toolvane_list_rewrites_total", s, "result"), "{{result}}"),
                    unit="reqps",
                    width=12,
                ),
                lines(
                    "list_changed notifications",
                    "Sent to clients with an open stream.",
                    q(rate("toolvane_list_changed_notifications_total", s, "backend"), "{{backend}}"),
                    unit="cps",
                    width=12,
                ),
            ],
        ),
    ]
    return dashboard(
        "toolvane-overview",
        "toolvane / Overview",
        "Which tools are usable, what callers get, what it costs.",
        rows,
        [JOB, INSTANCE, BACKEND],
    )


def tool():
    s = f'{HERE_}, backend=~"$backend", tool=~"$tool"'
    backend = BACKENDS
    one = variable("backend", "Backend", 'label_values(toolvane_tool_state{job=~"$job"}, backend)', multi=False)
    which = variable(
        "tool",
        "Tool",
        'label_values(toolvane_tool_state{job=~"$job", backend=~"$backend", tool!="*"}, tool)',
        multi=False,
    )
    status = 'max by (instance) (toolvane_tool_state{%s, state="degraded"}) + 2 * max by (instance) (toolvane_tool_state{%s, state="down"})'
    of_backend = f'{HERE_}, backend=~"$backend", tool="*"'
    rows = [
        (
            "Status",
            [
                number(
                    "Worst",
                    "The worst that any sidecar says.",
                    now(
                        f'max(toolvane_tool_state{{{s}, state="degraded"}}) + 2 * max(toolvane_tool_state{{{s}, state="down"}})'
                    ),
                    width=4,
                    defaults={"mappings": STATUS},
                ),
                number(
                    "Since",
                    "When the newest state began.",
                    now(f"1000 * max(toolvane_tool_state_since_timestamp_seconds{{{s}}})"),
                    unit="dateTimeFromNow",
                    width=4,
                ),
                number(
                    "Calls",
                    "Judged calls a second.",
                    now(f"sum(rate(toolvane_calls_total{{{s}}}[$__rate_interval]))"),
                    unit="reqps",
                    decimals=2,
                    width=4,
                ),
                number(
                    "Not called",
                    "Calls a second that were answered without the backend.",
                    now(f"sum(rate(toolvane_short_circuits_total{{{s}}}[$__rate_interval])) or vector(0)"),
                    unit="reqps",
                    decimals=2,
                    width=4,
                ),
                number(
                    "Failing",
                    "Share of judged calls that failed.",
                    now(
                        f'(sum(rate(toolvane_calls_total{{{s}, outcome="failure"}}[$__rate_interval])) or vector(0)) / sum(rate(toolvane_calls_total{{{s}}}[$__rate_interval]))'
                    ),
                    unit="percentunit",
                    decimals=1,
                    steps=[(0.05, DEGRADED), (0.25, DOWN)],
                    width=4,
                ),
                number(
                    "p95",
                    "Of the whole call.",
                    now(quantile(0.95, "toolvane_call_duration_seconds", s)),
                    unit="s",
                    decimals=2,
                    width=4,
                ),
                timeline(
                    "Status by sidecar",
                    "For everybody: the worst entry at PROJECT or wider. One user's trouble is not shown here.",
                    q(status % (s, s), "{{instance}}"),
                    width=24,
                    height=6,
                ),
                timeline(
                    "The backend as a whole",
                    "DOWN: no connection to it. Then all of its tools are.",
                    q(status % (of_backend, of_backend), "{{instance}}"),
                    width=24,
                    height=5,
                ),
            ],
        ),
        (
            "Calls",
            [
                lines(
                    "Outcomes",
                    "",
                    q(rate("toolvane_calls_total", s, "outcome"), "{{outcome}}"),
                    unit="reqps",
                    stacked=True,
                ),
                lines(
                    "Error classes",
                    "",
                    q(rate("toolvane_calls_total", s + ', code!="none"', "code"), "{{code}}"),
                    unit="reqps",
                ),
                lines(
                    "Not called, by reason",
                    "",
                    q(rate("toolvane_short_circuits_total", s, "reason"), "{{reason}}"),
                    unit="reqps",
                    stacked=True,
                ),
            ],
        ),
        (
            "Durations",
            [
                lines(
                    "Whole call",
                    "Own answers included. Dots are exemplars: single calls with a trace.",
                    q(quantile(0.5, "toolvane_call_duration_seconds", s), "p50", exemplar=True),
                    q(quantile(0.95, "toolvane_call_duration_seconds", s), "p95", exemplar=True),
                    q(quantile(0.99, "toolvane_call_duration_seconds", s), "p99", exemplar=True),
                    unit="s",
                    width=12,
                ),
                lines(
                    "Backend",
                    "From sending the call to the end of its answer.",
                    q(quantile(0.5, "toolvane_upstream_duration_seconds", s), "p50"),
                    q(quantile(0.95, "toolvane_upstream_duration_seconds", s), "p95"),
                    q(quantile(0.99, "toolvane_upstream_duration_seconds", s), "p99"),
                    unit="s",
                    width=12,
                ),
            ],
        ),
        (
            "Why (of the whole backend)",
            [
                ranking(
                    "Signatures",
                    "Over the time shown.",
                    now(
                        f"topk(10, sum by (signature, classification) (increase(toolvane_failures_total{{{backend}}}[$__range])))",
                        "{{signature}} ({{classification}})",
                    ),
                ),
                lines(
                    "Cooldowns",
                    "Whose deadline lies ahead.",
                    q(f"sum by (classification) (toolvane_cooldowns_active{{{backend}}})", "{{classification}}"),
                ),
                lines(
                    "Diagnosis and trials",
                    "",
                    q(rate("toolvane_diagnosis_claims_total", backend, "result"), "diagnosis {{result}}"),
                    q(rate("toolvane_trials_total", backend, "result"), "trial {{result}}"),
                    unit="cps",
                ),
            ],
        ),
    ]
    return dashboard(
        "toolvane-tool",
        "toolvane / Tool",
        "One tool: how it stands, what its calls come to, how long they take, and why.",
        rows,
        [JOB, INSTANCE, one, which],
    )


def internals():
    h, s = HERE_, BACKENDS
    rows = [
        (
            "Process",
            [
                lines(
                    "CPU",
                    "Seconds a second.",
                    q(f"rate(process_cpu_seconds_total{{{h}}}[$__rate_interval])", "{{instance}}"),
                    unit="percentunit",
                    width=6,
                ),
                lines(
                    "Memory",
                    "",
                    q(f"process_resident_memory_bytes{{{h}}}", "{{instance}} resident"),
                    q(f"process_virtual_memory_bytes{{{h}}}", "{{instance}} virtual"),
                    unit="bytes",
                    width=6,
                ),
                lines(
                    "File descriptors",
                    "",
                    q(f"process_open_fds{{{h}}}", "{{instance}}"),
                    q(f"process_max_fds{{{h}}}", "{{instance}} at most"),
                    width=6,
                ),
                lines("Threads", "", q(f"process_threads{{{h}}}", "{{instance}}"), width=6),
                Panel(
                    "table",
                    "Builds and configuration",
                    "What runs where, since when, and with which configuration in force.",
                    now(f"max by (instance, version, revision) (toolvane_build_info{{{h}}})", format="table"),
                    now(f"max by (instance, hash) (toolvane_config_info{{{h}}})", format="table"),
                    now(f"1000 * max by (instance) (process_start_time_seconds{{{h}}})", format="table"),
                    now(
                        f"1000 * max by (instance) (toolvane_config_last_reload_success_timestamp_seconds{{{h}}})",
                        format="table",
                    ),
                    width=16,
                    overrides=[
                        {
                            "matcher": {"id": "byRegexp", "options": "Started|Loaded"},
                            "properties": [{"id": "unit", "value": "dateTimeFromNow"}],
                        }
                    ],
                    transformations=[
                        {"id": "merge", "options": {}},
                        {
                            "id": "organize",
                            "options": {
                                "excludeByName": {"Time": True, "Value #A": True, "Value #B": True},
                                "renameByName": {"Value #C": "Started", "Value #D": "Loaded"},
                            },
                        },
                    ],
                    options={"showHeader": True},
                ),
                lines(
                    "Reloads",
                    "",
                    q(
                        f"sum by (result) (increase(toolvane_config_reloads_total{{{h}}}[$__rate_interval]))",
                        "{{result}}",
                    ),
                    q(
                        f"min by (instance) (toolvane_config_last_reload_successful{{{h}}})",
                        "{{instance}}: last one fine",
                    ),
                ),
            ],
        ),
        (
            "Traffic",
            [
                lines(
                    "Requests by kind",
                    "Calls of tools are judged, the rest passes.",
                    q(rate("toolvane_requests_total", s, "kind"), "{{kind}}"),
                    unit="reqps",
                    stacked=True,
                ),
                lines("Calls in flight", "", q(f"sum by (backend) (toolvane_calls_in_flight{{{s}}})", "{{backend}}")),
                lines(
                    "Passed unjudged",
                    "By reason; peek_limit means that limits.body_peek is too small for some call.",
                    q(rate("toolvane_unjudged_total", s, "reason"), "{{reason}}"),
                    unit="reqps",
                ),
                lines(
                    "Connections to backends",
                    "",
                    q(f"sum by (backend) (toolvane_upstream_connections{{{s}}})", "{{backend}} open"),
                    q(rate("toolvane_upstream_connections_opened_total", s, "backend"), "{{backend}} opened a second"),
                ),
                lines(
                    "Connects that failed",
                    "",
                    q(rate("toolvane_upstream_connect_failures_total", s, "backend, reason"), "{{backend}} {{reason}}"),
                    unit="cps",
                ),
                lines(
                    "Connections from callers",
                    "",
                    q(f"sum by (listener) (toolvane_downstream_connections{{{h}}})", "{{listener}} open"),
                    q(
                        rate("toolvane_downstream_connections_accepted_total", h, "listener"),
                        "{{listener}} accepted a second",
                    ),
                ),
                lines(
                    "Refused by limits",
                    "",
                    q(rate("toolvane_limit_rejections_total", h, "limit"), "{{limit}}"),
                    unit="reqps",
                    width=12,
                ),
                lines(
                    "Identity headers dropped",
                    "From sources that are not trusted: identity.trusted_sources may be too narrow.",
                    q(
                        f"sum by (instance) (rate(toolvane_identity_headers_dropped_total{{{h}}}[$__rate_interval]))",
                        "{{instance}}",
                    ),
                    unit="cps",
                    width=12,
                ),
            ],
        ),
        (
            "Memory and state file",
            [
                lines(
                    "Health documents",
                    "In memory; idle ones live in the state file alone.",
                    q(f"toolvane_health_documents{{{h}}}", "{{instance}}"),
                ),
                lines(
                    "Dropped to keep a bound",
                    "",
                    q(f"sum by (what) (increase(toolvane_evictions_total{{{h}}}[$__rate_interval]))", "{{what}}"),
                ),
                lines(
                    "Rule hits",
                    "The ten that matched most.",
                    q(f"topk(10, {rate('toolvane_rule_hits_total', h, 'rule')})", "{{rule}}"),
                    unit="cps",
                ),
                lines(
                    "State file healthy",
                    "0: memory goes on alone.",
                    q(f"toolvane_store_healthy{{{h}}}", "{{instance}}"),
                    defaults_max=1,
                ),
                lines(
                    "Commits and documents",
                    "",
                    q(f"rate(toolvane_store_commits_total{{{h}}}[$__rate_interval])", "{{instance}} commits"),
                    q(
                        f"rate(toolvane_store_documents_written_total{{{h}}}[$__rate_interval])",
                        "{{instance}} documents",
                    ),
                    q(
                        f"rate(toolvane_store_commit_failures_total{{{h}}}[$__rate_interval])",
                        "{{instance}} failed commits",
                    ),
                    unit="cps",
                ),
                lines(
                    "Waiting, dropped, unreadable",
                    "",
                    q(f"toolvane_store_queued_documents{{{h}}}", "{{instance}} waiting"),
                    q(
                        f"increase(toolvane_store_documents_dropped_total{{{h}}}[$__rate_interval])",
                        "{{instance}} dropped",
                    ),
                    q(
                        f"increase(toolvane_store_documents_unreadable_total{{{h}}}[$__rate_interval])",
                        "{{instance}} unreadable",
                    ),
                ),
                lines(
                    "Size of the state file",
                    "",
                    q(f"toolvane_store_file_size_bytes{{{h}}}", "{{instance}}"),
                    unit="bytes",
                    width=12,
                ),
                lines(
                    "Time since the last commit",
                    "Grows while nothing changes.",
                    q(f"time() - toolvane_store_last_commit_timestamp_seconds{{{h}}}", "{{instance}}"),
                    unit="s",
                    width=12,
                ),
            ],
        ),
        (
            "Own faults",
            [
                lines(
                    "Internal errors",
                    "Faults of toolvane itself; traffic passed.",
                    q(
                        f"sum by (place) (increase(toolvane_internal_errors_total{{{h}}}[$__rate_interval]))",
                        "{{place}}",
                    ),
                    width=12,
                ),
                lines(
                    "Names lumped together as other",
                    "",
                    q(
                        f"sum by (label) (increase(toolvane_label_overflows_total{{{h}}}[$__rate_interval]))",
                        "{{label}}",
                    ),
                    width=12,
                ),
            ],
        ),
    ]
    return dashboard(
        "toolvane-internals",
        "toolvane / Internals",
        "The sidecars themselves: process, traffic, memory, state file, own faults.",
        rows,
        [JOB, INSTANCE, BACKEND],
    )


def dashboard(uid, title, about, rows, variables):
    panels, y, numbers = [], 0, iter(range(1, 1000))
    for name, members in rows:
        panels.append(
            {
                "id": next(numbers),
                "type": "row",
                "title": name,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": 24, "h": 1},
            }
        )
        y, x, tallest = y + 1, 0, 0
        for panel in members:
            if maximum := panel.more.pop("defaults_max", None):
                panel.more["defaults"]["max"] = maximum
            if x + panel.width > 24:
                x, y, tallest = 0, y + tallest, 0
            panels.append(panel.render(next(numbers), x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    others = {"asDropdown": False, "icon": "external link", "includeVars": True, "keepTime": True, "tags": ["toolvane"]}
    return {
        "uid": uid,
        "id": None,
        "title": title,
        "description": about,
        "tags": ["toolvane"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "links": [
            {**others, "title": "toolvane", "tooltip": "", "targetBlank": False, "type": "dashboards", "url": ""}
        ],
        "annotations": {"list": []},
        "templating": {"list": [DATASOURCE_VARIABLE, *variables]},
        "panels": panels,
    }


def main():
    stale = []
    for made in (overview(), tool(), internals()):
        path = HERE / "grafana" / f"{made['uid'].removeprefix('toolvane-')}.json"
        text = json.dumps(made, indent=2, ensure_ascii=False) + "\n"
        if "--check" not in sys.argv:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(path.name)
    if stale:
        sys.exit(f"{', '.join(stale)}: not what dashboards/generate.py writes; run it and commit the result")


if __name__ == "__main__":
    main()
