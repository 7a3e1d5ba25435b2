#!/usr/bin/env python3
"""Writes grafana/*.json from what `boards/` states: which panels, with which expressions, in which rows.

python3 dashboards/generate.py            writes the files
python3 dashboards/generate.py --check    fails if they are not what would be written
"""

import json
import pathlib
import sys

sys.dont_write_bytecode = True

from boards import internals, overview, tool  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def main():
    stale = []
    for made in (overview.overview(), tool.tool(), internals.internals()):
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
