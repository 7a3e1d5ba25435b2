#!/usr/bin/env python3
"""Writes grafana/*.json from what `boards/` states: which panels, with which expressions, in which rows; and the rules once
more as objects of the Prometheus operator, deploy/monitoring/prometheusrule.yaml.

python3 dashboards/generate.py            writes the files
python3 dashboards/generate.py --check    fails if they are not what would be written
"""

import json
import pathlib
import sys
import textwrap

sys.dont_write_bytecode = True

from boards import internals, overview, tool  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent
REPO = HERE.parent
OPERATOR = """\
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: toolvane-{name}
  labels: {{app.kubernetes.io/name: toolvane}}
spec:
"""


def boards():
    for made in (overview.overview(), tool.tool(), internals.internals()):
        path = HERE / "grafana" / f"{made['uid'].removeprefix('toolvane-')}.json"
        yield path, json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def operator_rules():
    head = "# Written by dashboards/generate.py from dashboards/rules.\n"
    for file in sorted((HERE / "rules").glob("*.yaml")):
        head += OPERATOR.format(name=file.stem) + textwrap.indent(file.read_text(), "  ")
    yield REPO / "deploy" / "monitoring" / "prometheusrule.yaml", head


def main():
    stale = []
    for path, text in [*boards(), *operator_rules()]:
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(REPO)))
    if stale:
        sys.exit(f"{', '.join(stale)}: not what dashboards/generate.py writes; run `make docs` and commit the result")


if __name__ == "__main__":
    main()
