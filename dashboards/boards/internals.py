"""The sidecars themselves: process, traffic, memory, state file, own faults."""

from .panels import (
    BACKEND,
    BACKENDS,
    INSTANCE,
    JOB,
    SIDECARS,
    Panel,
    dashboard,
    lines,
    now,
    q,
    rate,
)


def internals():
    h, s = SIDECARS, BACKENDS
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
                lines(
                    "Tokens that gave no identity",
                    "By reason; unknown_key for long means that the issuer's keys cannot be read.",
                    q(rate("toolvane_identity_tokens_refused_total", h, "reason"), "{{reason}}"),
                    unit="cps",
                    width=12,
                ),
                lines(
                    "Keys and OpenAPI documents",
                    "Reads in the background; while they fail, the last good document stays in force.",
                    q(rate("toolvane_document_reads_total", h, "what, result"), "{{what}} {{result}}"),
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
                    q(
                        f"increase(toolvane_outcomes_left_out_total{{{h}}}[$__rate_interval])",
                        "{{instance}} outcomes not recorded",
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
