#!/usr/bin/env bash
# Installs what the browser tests need, once, and says so: Debian's chromium, and npm packages into .cache/browser.
set -euo pipefail
cd "$(dirname "$0")/../.."
if ! test -x /usr/bin/chromium; then
    echo "browser: installing chromium (apt-get)" >&2
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
fi
made_from=$(cat tests/browser/package.json tests/browser/package-lock.json | sha256sum | cut -d' ' -f1)
if [[ $(cat .cache/browser/.made-from 2>/dev/null) != "$made_from" ]]; then
    echo "browser: installing playwright-core and axe-core (npm) into .cache/browser" >&2
    mkdir -p .cache/browser
    cp tests/browser/package.json tests/browser/package-lock.json tests/browser/.npmrc .cache/browser/
    # Scripts stay off: neither package needs one, and an install should run no foreign code.
    (cd .cache/browser && npm ci --ignore-scripts --loglevel=error >/dev/null)
    echo "$made_from" >.cache/browser/.made-from
fi
