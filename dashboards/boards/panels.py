"""What dashboards are made of: panels, expressions, variables, and the grid that panels flow over from left to right, so that none
can overlap another."""

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


def failing(selector):
    """The share of judged calls that failed."""
    failed = f'sum(rate(toolvane_calls_total{{{selector}, outcome="failure"}}[$__rate_interval])) or vector(0)'
    return f"({failed}) / sum(rate(toolvane_calls_total{{{selector}}}[$__rate_interval]))"


def worst(selector, by):
    """The worst status of each group, as STATUS names it."""
    grouped = f"max by ({by})" if by else "max"
    degraded, down = (f'{grouped} (toolvane_tool_state{{{selector}, state="{word}"}})' for word in ("degraded", "down"))
    return f"{degraded} + 2 * {down}"


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
SIDECARS = 'job=~"$job", instance=~"$instance"'
BACKENDS = f'{SIDECARS}, backend=~"$backend"'


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
