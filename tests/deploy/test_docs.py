"""Documents are true: references are what the program says of itself, every rule of the cookbook decides as it says, every block
of README and getting-started is run or read by the program, and links lead somewhere."""

import itertools
import json
import re
import subprocess
import sys

import metrics
import promexpr
import pytest
from tools import REPO, sh

DOCS = REPO / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def binary(request):
    return request.config.getoption("toolvane").absolute()


def blocks(text, *languages):
    return [body for language, body in BLOCK.findall(text) if language in languages]


def test_the_references_are_what_the_program_says(binary):
    command = [sys.executable, DOCS / "generate.py", "--toolvane", binary, "--check"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def recipes():
    parts = re.split(r"^## (?=\d)", (DOCS / "cookbook.md").read_text(), flags=re.MULTILINE)[1:]
    return [pytest.param(part, id=part.split("\n")[0]) for part in parts]


def test_the_cookbook_has_ten_recipes():
    assert len(recipes()) == 10


@pytest.mark.parametrize("recipe", recipes())
def test_a_recipe_decides_as_it_says(recipe, binary, tmp_path):
    [rules] = blocks(recipe, "yaml")
    [outcomes] = blocks(recipe, "json")
    file = tmp_path / "rules.yaml"
    file.write_text(rules)
    sh(binary, "check", file)
    decided = [json.loads(line) for line in sh(binary, "classify", "--rules", file, text=outcomes).splitlines()]
    expected = [json.loads(line) for line in outcomes.splitlines()]
    assert len(decided) == len(expected) >= 1
    for case, decision in zip(expected, decided, strict=True):
        assert {key: decision[key] for key in case["expect"]} == case["expect"], case["id"]
    # Without the rule it is decided otherwise, or the recipe would be for nothing.
    before = [json.loads(line) for line in sh(binary, "classify", text=outcomes).splitlines()]
    assert before[0] != decided[0]


def pages():
    return [REPO / "README.md", REPO / "ARCHITECTURE.md", REPO / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]


def anchors(text):
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_link_leads_somewhere():
    seen = 0
    for page in pages():
        for target in re.findall(r"\]\(([^)#\s]*(?:#[^)\s]+)?)\)", page.read_text()):
            if target.startswith("http"):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), f"{page.relative_to(REPO)}: {target}"
            assert not anchor or anchor in anchors(file.read_text()), f"{page.relative_to(REPO)}: {target}"
            seen += 1
    assert seen > 20


def test_every_picture_is_there_in_both_colours_and_small():
    seen = 0
    for page in pages():
        for dark, words, light in re.findall(r'srcset="([^"]+)"><img alt="([^"]+)" src="([^"]+)"', page.read_text()):
            assert dark == light.replace("-light.", "-dark.") and words
            for picture in (dark, light):
                size = (page.parent / picture).stat().st_size
                assert size < 150 * 1024, f"{picture}: {size} bytes"
                seen += 1
    assert seen == 14
    assert len(list((DOCS / "images").iterdir())) == seen


def test_log_lines_that_a_page_quotes_are_written():
    sources = "\n".join(file.read_text() for file in (REPO / "src").rglob("*.rs"))
    quoted = [line for page in pages() for line in re.findall(r"line `([^`]+)`", page.read_text())]
    assert len(quoted) >= 3
    for line in quoted:
        assert f'"{line}' in sources, line


def test_metrics_that_a_page_names_exist():
    exist = {*metrics.families(), "toolvane_tool_state"}
    named = [name for page in pages() for name in re.findall(r"`((?:toolvane|process)_[a-z_]+)", page.read_text())]
    assert len(named) > 50
    assert {promexpr.base(name) for name in named} <= exist


def test_keys_that_a_page_names_exist():
    """Words like `limits.calls`: the first part is a section of the configuration, so the rest must be one of its keys."""
    reference = (DOCS / "reference" / "configuration.md").read_text()
    keys = {key.replace("[]", "") for key in re.findall(r"^\| `([^`]+)`", reference, re.MULTILINE)}
    sections = {key for key in keys if "." not in key}
    seen = 0
    for page in [REPO / "README.md", *DOCS.glob("*.md"), *(DOCS / "runbooks").glob("*.md")]:
        for named in re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)`", page.read_text()):
            if named.split(".")[0] in sections:
                assert named in keys, f"{page.name}: {named}"
                seen += 1
    assert seen > 10


def test_every_page_is_listed():
    listed = (DOCS / "README.md").read_text()
    for page in DOCS.glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in listed


def test_every_configuration_in_the_documents_is_valid(binary, tmp_path):
    """A YAML block is a whole configuration, a rule file, a file of cases, or an excerpt that one backend makes whole."""
    numbers = itertools.count()
    seen = 0
    for page in pages():
        texts = blocks(page.read_text(), "yaml")
        for text in texts:
            # What a page calls by name, others of its files may name.
            named = re.match(r"# (\S+\.yaml)\n", text)
            if named:
                (tmp_path / named[1]).write_text(text)
        for text in texts:
            file = tmp_path / f"{next(numbers)}.yaml"
            whole = re.search(r"^(backends|patterns|cases):", text, re.MULTILINE)
            added = "" if whole else "backends: [{name: backend, kind: mcp, url: 'http://127.0.0.1:9000/mcp'}]\n"
            file.write_text(text + added)
            said = subprocess.run([binary, "check", file], capture_output=True, text=True)
            assert said.returncode == 0, f"{page.relative_to(REPO)}\n{text}\n{said.stderr}"
            seen += 1
    assert seen > 10
