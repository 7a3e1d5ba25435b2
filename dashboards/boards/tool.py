"""One tool: how it stands, what its calls come to, how long they take, and why."""

from .panels import (
    BACKENDS,
    DEGRADED,
    DOWN,
    INSTANCE,
    JOB,
    SIDECARS,
    STATUS,
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
    variable,
    worst,
)


def tool():
    s = f'{SIDECARS}, backend=~"$backend", tool=~"$tool"'
    backend = BACKENDS
    one = variable("backend", "Backend", 'label_values(toolvane_tool_state{job=~"$job"}, backend)', multi=False)
    which = variable(
        "tool",
        "Tool",
        'label_values(toolvane_tool_state{job=~"$job", backend=~"$backend", tool!="*"}, tool)',
        multi=False,
    )
    of_backend = f'{SIDECARS}, backend=~"$backend", tool="*"'
    rows = [
        (
            "Status",
            [
                number(
                    "Worst",
                    "The worst that any sidecar says.",
                    now(worst(s, "")),
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
                    now(failing(s)),
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
                    q(worst(s, "instance"), "{{instance}}"),
                    width=24,
                    height=6,
                ),
                timeline(
                    "The backend as a whole",
                    "DOWN: no connection to it. Then all of its tools are.",
                    q(worst(of_backend, "instance"), "{{instance}}"),
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
