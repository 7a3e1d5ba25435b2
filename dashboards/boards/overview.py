"""The fleet: which tools are usable, what callers get, what it costs."""

from .panels import (
    BACKEND,
    BACKENDS,
    DEGRADED,
    DOWN,
    INSTANCE,
    JOB,
    SIDECARS,
    STATUS,
    Panel,
    dashboard,
    failing,
    lines,
    now,
    number,
    q,
    quantile,
    ranking,
    rate,
    timeline,
    worst,
)


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
            f"{worst(s, 'backend, tool')} > 0",
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
                number("Sidecars", "Sidecars that are scraped.", now(f"count(toolvane_build_info{{{SIDECARS}}})")),
                number("Draining", "Sidecars that were told to leave.", now(f"sum(toolvane_draining{{{SIDECARS}}})")),
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
                    now(failing(s)),
                    unit="percentunit",
                    decimals=1,
                    steps=[(0.05, DEGRADED), (0.25, DOWN)],
                ),
                table,
                timeline(
                    "Status of tools",
                    "The worst that any sidecar says of each tool.",
                    q(
                        worst(s, "backend, tool"),
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
                    "Would be short-circuited",
                    "In observe mode: calls that passed and that enforce mode would have answered without the backend.",
                    q(rate("toolvane_would_short_circuit_total", s, "reason"), "{{reason}}"),
                    unit="reqps",
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
            "Readiness and tool lists",
            [
                lines(
                    "Hidden tools",
                    "Known tools that nobody is shown, by reason: credentials are missing, or the integration is not set up.",
                    q(
                        f"sum by (backend, reason) (toolvane_tools_hidden{{{s}}}) or vector(0)",
                        "{{backend}} {{reason}}",
                    ),
                    width=8,
                ),
                lines(
                    "Integrations that are not ready",
                    "How many sidecars say so of each. unknown hides nothing.",
                    q(
                        f'sum by (integration, state) (toolvane_integration_state{{{SIDECARS}, state!="ready"}}) > 0',
                        "{{integration}} {{state}}",
                    ),
                    width=8,
                ),
                lines(
                    "Probes of integrations",
                    "By what they came to.",
                    q(
                        rate("toolvane_integration_probes_total", SIDECARS, "integration, result"),
                        "{{integration}} {{result}}",
                    ),
                    unit="cps",
                    width=8,
                ),
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
