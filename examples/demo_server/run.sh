#!/usr/bin/env bash
# `make run`: the demo server behind toolvane, until Ctrl-C. When somebody kills the demo server, it comes back after a while.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1
listen=${LISTEN:-127.0.0.1:8080} admin=${ADMIN:-127.0.0.1:9090} demo=${DEMO:-127.0.0.1:9000}
toolvane_bin=${TOOLVANE_BIN:-target/debug/toolvane} demo_bin=${DEMO_BIN:-target/debug/examples/demo_server}
back_after=20
state=$(mktemp -d)
call="examples/demo_server/call.sh"
toolvane_pid="" demo_pid="" tail_pid="" stopping=""

stop() {
    [[ $stopping ]] && return
    stopping=yes
    echo
    echo "stopping"
    [[ $toolvane_pid ]] && kill -TERM "$toolvane_pid" 2>/dev/null && wait "$toolvane_pid"
    [[ $tail_pid ]] && kill "$tail_pid" 2>/dev/null
    [[ $demo_pid ]] && kill -TERM "$demo_pid" 2>/dev/null && wait "$demo_pid"
    rm -rf "$state"
}
trap 'stop; exit 0' INT TERM
trap stop EXIT

# Waits until a log holds what is looked for; fails with the log when its program has ended.
await() {
    local pid=$1 log=$2 words=$3
    until grep -q "$words" "$log" 2>/dev/null; do
        kill -0 "$pid" 2>/dev/null || { cat "$log" >&2; exit 1; }
        sleep 0.05
    done
    grep -o "$words on http://[^ \"]*" "$log" | head -1 | sed 's/.* on //'
}

# Each program in a process group of its own: Ctrl-C reaches this script, which ends them in order.
start_demo() {
    setsid "$demo_bin" --listen "$1" --sessions "$state/sessions" 2>"$state/demo.log" &
    demo_pid=$!
}

start_demo "$demo"
backend=$(await "$demo_pid" "$state/demo.log" "demo server") || exit 1
back_at=${backend#http://}
back_at=${back_at%/mcp}
cat >"$state/toolvane.yaml" <<YAML
listen: $listen
admin: {listen: $admin}
backends:
  - {name: demo, kind: mcp, url: "$backend"}
tools:
  broken: {advice: "Search with echo instead."}
store: {path: "$state/toolvane.redb"}
# Nobody else sends calls here who would have to hear of the end first.
drain_announce: 0s
log: {format: text}
YAML
setsid "$toolvane_bin" run -c "$state/toolvane.yaml" 2>"$state/toolvane.log" &
toolvane_pid=$!
front=$(await "$toolvane_pid" "$state/toolvane.log" "listening") || exit 1
admin_url=$(await "$toolvane_pid" "$state/toolvane.log" "admin") || exit 1

# One list through toolvane: shows that all of it works, and is the copy that is served while the demo server is gone.
TOOLVANE=$front/mcp "$call" --list >/dev/null || exit 1

[[ $front == http://127.0.0.1:8080 ]] || call="TOOLVANE=$front/mcp $call"

cat <<WORDS

  toolvane           $front/mcp      (point any MCP client here)
  health documents   $admin_url/v1/health
  metrics            $admin_url/metrics
  demo server        $backend      (process $demo_pid)

Three things to try in another terminal:

  1. A tool that always fails is DOWN after five seconds of failures, and is then answered without being called:
       for i in 1 2 3 4 5 6 7; do $call broken; sleep 1; done

  2. Alice's expired token is alice's trouble; bob notices nothing:
       $call expired_token '{}' alice; $call expired_token '{}' bob

  3. Kill the demo server: the next call says that it is unreachable, and the tool list says so too. It comes back
     after $back_after s, and the first call then works:
       kill -9 $demo_pid; $call echo '{"text":"hello"}'; sleep 3; $call --list

Ctrl-C ends both. What follows is toolvane's log.

WORDS
tail -n +1 -f "$state/toolvane.log" &
tail_pid=$!

while kill -0 "$toolvane_pid" 2>/dev/null; do
    if ! kill -0 "$demo_pid" 2>/dev/null; then
        { wait "$demo_pid"; } 2>/dev/null
        echo "the demo server is gone; it comes back in $back_after s"
        sleep "$back_after" & wait $!
        start_demo "$back_at"
        echo "the demo server is back (process $demo_pid)"
    fi
    { sleep 0.5 & wait $!; } 2>/dev/null
done
echo "toolvane ended" >&2
exit 1
