#!/bin/sh
# Checks what a running toolvane gives to scrapers: promtool reads the text form and lints its names and help, Python's
# strict parser reads the OpenMetrics form, and the protobuf form is delivered when asked for.
#
#   tests/tools/check_metrics.sh http://127.0.0.1:9090/metrics
#
# Needs curl, promtool (apt-get install prometheus) and Python with prometheus-client (pip install prometheus-client).
set -eu

url=${1:?usage: check_metrics.sh URL}
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT

# fetch NAME ACCEPT CONTENT_TYPE: the body lands in NAME; the content type must begin as stated.
fetch() {
    found=$(curl --silent --show-error --fail --max-time 10 --header "accept: $2" --output "$directory/$1" \
        --write-out '%{content_type}' "$url")
    case $found in
        "$3"*) ;;
        *) echo "$url: asked for $2, expected content type $3, got $found" >&2; exit 1 ;;
    esac
}

fetch text 'text/plain' 'text/plain; version=0.0.4'
promtool check metrics <"$directory/text"

fetch open 'application/openmetrics-text; version=1.0.0' 'application/openmetrics-text; version=1.0.0'
python3 - "$directory/open" <<'PYTHON'
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families

with open(sys.argv[1], encoding="utf-8", newline="") as file:
    families = list(text_string_to_metric_families(file.read()))
names = {family.name for family in families}
missing = {"toolvane_build", "toolvane_calls_in_flight", "process_cpu_seconds"} - names
if missing:
    sys.exit(f"families missing: {sorted(missing)}")
print(f"OpenMetrics: {len(families)} families")
PYTHON

protobuf='application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited'
fetch protobuf "$protobuf" 'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited'
test -s "$directory/protobuf"
echo "$url: fine in all three formats"
