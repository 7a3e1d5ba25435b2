"""Manifests are what Kubernetes, Compose, Helm, kustomize, systemd and the Prometheus operator take, and say the same thing."""

import json
import pathlib
import re

import known_commands
import pytest
import yaml
from tools import NODE, REPO, helm, kubectl, sh, validator

DEPLOY = REPO / "deploy"
CHART = DEPLOY / "helm" / "toolvane"
VALUES = sorted((CHART / "ci").glob("*-values.yaml"))
VERSIONS = [f"1.{minor}" for minor in range(29, 38)]
# What a version of Kubernetes does not know yet.
SINCE = {"MutatingAdmissionPolicy": 36, "MutatingAdmissionPolicyBinding": 36}
# Their schemas are the operator's.
FOREIGN = {"PodMonitor", "PrometheusRule"}
verify = pytest.mark.verify


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def rendered(values, version="1.37.0"):
    return sh(helm(), "template", "release", CHART, "-f", values, "--kube-version", version, "--namespace", "tools")


def everything_plain():
    """All objects of Kubernetes that this repository ships, by where they come from."""
    yield "kubernetes", (DEPLOY / "kubernetes" / "deployment.yaml").read_text()
    yield "kubernetes", (DEPLOY / "kubernetes" / "networkpolicy.yaml").read_text()
    yield "inject", (DEPLOY / "inject" / "mutatingadmissionpolicy.yaml").read_text()
    yield "kustomize", sh(kubectl(), "kustomize", DEPLOY / "kustomize" / "example")


def validate(text, version, folder):
    minor = int(version.split(".")[1])
    known = [d for d in documents(text) if d["kind"] not in FOREIGN and SINCE.get(d["kind"], 0) <= minor]
    if not known:
        return 0
    file = folder / "objects.yaml"
    file.write_text(yaml.safe_dump_all(known))
    sh(validator("kubernetes-validate"), "-k", version, "--strict", "--quiet", file)
    return len(known)


@verify
@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_fits_the_schema_of_kubernetes(version, tmp_path):
    seen = sum(validate(text, version, tmp_path) for _, text in everything_plain())
    kube = f"{version}.0" if int(version.split(".")[1]) >= 36 else "1.36.0"
    seen += sum(validate(rendered(values, kube), version, tmp_path) for values in VALUES)
    assert seen > 25


@verify
def test_a_mistake_in_a_manifest_would_be_found(tmp_path):
    text = (
        (DEPLOY / "kubernetes" / "deployment.yaml")
        .read_text()
        .replace("restartPolicy: Always", "restartPolice: Always")
    )
    with pytest.raises(AssertionError):
        validate(text, "1.37", tmp_path)


@verify
def test_the_chart_passes_lint_for_every_set_of_values():
    assert len(VALUES) >= 5
    for values in VALUES:
        said = sh(helm(), "lint", "--strict", CHART, "-f", values)
        assert "0 chart(s) failed" in said


@verify
@pytest.mark.parametrize(
    ("wrong", "named"),
    [("workload.replicas=-1", "replicas"), ("backend.imagine=x", "imagine"), ("podMonitor.interval=soon", "interval")],
)
def test_wrong_values_are_refused_by_name(wrong, named):
    said = sh(helm(), "template", "release", CHART, "--set", wrong, ok=(1,))
    assert said == ""
    with pytest.raises(AssertionError, match=named):
        sh(helm(), "template", "release", CHART, "--set", wrong)


@verify
def test_injection_on_an_old_cluster_is_refused_in_words():
    with pytest.raises(AssertionError, match="needs Kubernetes 1.36"):
        rendered(CHART / "ci" / "cluster-values.yaml", "1.35.0")


@verify
def test_the_configuration_that_the_chart_renders_is_valid(request, tmp_path):
    binary = request.config.getoption("toolvane").absolute()
    seen = 0
    for values in VALUES:
        for document in documents(rendered(values)):
            if document["kind"] == "ConfigMap" and "toolvane.yaml" in document["data"]:
                for name, text in document["data"].items():
                    (tmp_path / name).write_text(text.replace("/etc/toolvane/", f"{tmp_path}/"))
                sh(binary, "check", tmp_path / "toolvane.yaml")
                seen += 1
    assert seen >= 3


def test_every_configuration_that_is_shipped_is_valid(request):
    binary = request.config.getoption("toolvane").absolute()
    files = sorted(DEPLOY.rglob("toolvane.yaml"))
    assert len(files) >= 4
    sh(binary, "check", *files)


def pods(text):
    for document in documents(text):
        if document["kind"] == "Deployment":
            yield document["spec"]["template"]["spec"]


def sidecars(text):
    for pod in pods(text):
        yield from (c for c in pod.get("initContainers", []) if c["name"] == "toolvane")


def injected():
    """The sidecar as the policy's expression writes it, read as data."""
    policy = documents((DEPLOY / "inject" / "mutatingadmissionpolicy.yaml").read_text())
    expression = policy[0]["spec"]["mutations"][0]["applyConfiguration"]["expression"]
    parameters = next(d for d in policy if d["kind"] == "ConfigMap")["data"]
    text = re.sub(r"Object[.\w]*\{", "{", expression)
    text = re.sub(r"params\.data\.(\w+)", lambda found: json.dumps(parameters[found[1]]), text)
    text = text.replace("variables.config", '"toolvane"')
    text = re.sub(r"(?<=[{,\s])(\w+):(?=\s)", r'"\1":', text)
    return json.loads(text)["spec"]


def without_defaults(container):
    container = json.loads(json.dumps(container))
    for port in container["ports"]:
        if port.get("protocol") == "TCP":
            del port["protocol"]
    return container


def test_the_plain_manifest_and_the_injected_pod_get_the_same_sidecar():
    [plain] = sidecars((DEPLOY / "kubernetes" / "deployment.yaml").read_text())
    [by_policy] = injected()["initContainers"]
    assert without_defaults(by_policy) == plain


@verify
def test_chart_and_component_give_the_same_sidecar():
    [plain] = sidecars((DEPLOY / "kubernetes" / "deployment.yaml").read_text())
    [by_chart] = sidecars(rendered(CHART / "ci" / "minimal-values.yaml"))
    assert by_chart == plain
    [by_component] = sidecars(sh(kubectl(), "kustomize", DEPLOY / "kustomize" / "example"))
    assert by_component | {"image": plain["image"]} == plain


PARENT = """
apiVersion: apps/v1
kind: Deployment
metadata:
  name: own
spec:
  selector: {matchLabels: {app: own}}
  template:
    metadata: {labels: {app: own}}
    spec:
      initContainers:
        {{- include "toolvane.sidecar" .Subcharts.toolvane | nindent 8 }}
      containers:
        - {name: own, image: "example/own:1.0.0"}
      volumes:
        {{- include "toolvane.volumes" .Subcharts.toolvane | nindent 8 }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ include "toolvane.configMapName" .Subcharts.toolvane }}
data:
  {{- include "toolvane.config" .Subcharts.toolvane | nindent 2 }}
"""


@verify
def test_a_chart_of_ones_own_borrows_the_sidecar(tmp_path):
    parent = tmp_path / "own"
    (parent / "templates").mkdir(parents=True)
    (parent / "charts").mkdir()
    (parent / "charts" / "toolvane").symlink_to(CHART)
    dependency = {"name": "toolvane", "version": "0.1.0", "repository": "file://charts/toolvane"}
    chart = {"apiVersion": "v2", "name": "own", "version": "1.0.0", "dependencies": [dependency]}
    (parent / "Chart.yaml").write_text(yaml.safe_dump(chart))
    (parent / "values.yaml").write_text("toolvane: {workload: {enabled: false}}\n")
    (parent / "templates" / "own.yaml").write_text(PARENT)
    text = sh(helm(), "template", "release", parent, "--kube-version", "1.37.0")
    [borrowed] = sidecars(text)
    [plain] = sidecars((DEPLOY / "kubernetes" / "deployment.yaml").read_text())
    assert borrowed == plain
    made = documents(text)
    assert [d["kind"] for d in made].count("Deployment") == 1
    [config] = [d for d in made if d["kind"] == "ConfigMap"]
    [volumes] = [pod["volumes"] for pod in pods(text)]
    assert volumes[0]["configMap"]["name"] == config["metadata"]["name"]
    assert validate(text, "1.37", tmp_path) == 2


@verify
def test_the_component_leaves_unlabelled_deployments_alone():
    found = documents(sh(kubectl(), "kustomize", DEPLOY / "kustomize" / "example"))
    specs = {d["metadata"]["name"]: d["spec"]["template"]["spec"] for d in found if d["kind"] == "Deployment"}
    assert "initContainers" in specs["jira-mcp"]
    assert "initContainers" not in specs["website"]


def test_no_probe_depends_on_the_backend_and_the_grace_period_covers_the_drain():
    [pod] = pods((DEPLOY / "kubernetes" / "deployment.yaml").read_text())
    [sidecar] = sidecars((DEPLOY / "kubernetes" / "deployment.yaml").read_text())
    paths = {sidecar[f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "liveness", "readiness")}
    assert paths == {"/startupz", "/livez", "/readyz"}
    ports = {port["name"] for port in sidecar["ports"]}
    assert {sidecar[f"{kind}Probe"]["httpGet"]["port"] for kind in ("startup", "liveness", "readiness")} <= ports
    drain = int(
        yaml.safe_load((DEPLOY / "kubernetes" / "toolvane.yaml").read_text())["drain_timeout"].removesuffix("s")
    )
    sleep = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert sleep + drain < pod["terminationGracePeriodSeconds"]


@verify
def test_the_operators_schemas_take_the_monitors_and_rules(tmp_path):
    texts = [(DEPLOY / "monitoring" / f"{name}.yaml").read_text() for name in ("podmonitor", "prometheusrule")]
    texts += [
        rendered(CHART / "ci" / name) for name in ("everything-values.yaml", "http-values.yaml", "cluster-values.yaml")
    ]
    objects = [d for text in texts for d in documents(text) if d["kind"] in FOREIGN]
    assert {d["kind"] for d in objects} == FOREIGN
    script = NODE / "validate.mjs"
    script.write_text(
        """
import { readFileSync } from 'node:fs';
import * as v1 from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
for (const object of JSON.parse(readFileSync(0))) new v1[object.kind](object).validate();
"""
    )
    sh("node", script, cwd=NODE, text=json.dumps(objects))
    broken = [{**objects[0], "spec": {**objects[0]["spec"], "selector": None}}]
    sh("node", script, cwd=NODE, text=json.dumps(broken), ok=(1,))


@verify
def test_compose_takes_its_file():
    environment = {"BACKEND_IMAGE": "example/mcp-server:1.0.0"}
    file = DEPLOY / "compose" / "compose.yaml"
    for profile in ([], ["--profile", "monitoring"]):
        sh(validator("docker-compose"), *profile, "-f", file, "config", "-q", env=environment)
    shown = json.loads(sh(validator("docker-compose"), "-f", file, "config", "--format", "json", env=environment))
    assert shown["services"]["backend"]["network_mode"] == "service:toolvane"


@verify
def test_the_dockerfile_passes_hadolint():
    sh(validator("hadolint"), "--failure-threshold", "style", DEPLOY / "Dockerfile")


@verify
def test_systemd_takes_the_unit_and_finds_little_exposed(tmp_path):
    unit = tmp_path / "toolvane.service"
    text = (DEPLOY / "systemd" / "toolvane.service").read_text()
    # The program has to be there to be verified.
    unit.write_text(text.replace("/usr/local/bin/toolvane", "/bin/true"))
    sh("systemd-analyze", "verify", "--man=no", unit)
    sh("systemd-analyze", "security", "--offline=true", "--threshold=15", unit)
    unit.write_text(unit.read_text().replace("ProtectHome=", "ProtectHomes=") + "\nWhatever\n")
    said = sh("bash", "-c", f"systemd-analyze verify --man=no {unit} 2>&1", ok=(0, 1))
    assert "ProtectHomes" in said


@verify
def test_yaml_and_shell_are_tidy():
    config = pathlib.Path(__file__).with_name("yamllint.yaml")
    files = [
        f
        for f in [*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.yml"), *(REPO / "dashboards").rglob("*.yaml")]
        if "templates" not in f.parts
    ]
    assert len(files) > 15
    sh(validator("yamllint"), "-s", "-c", config, *files)
    scripts = [DEPLOY / "dist.sh", *(REPO / "examples").rglob("*.sh"), *(REPO / "tests").rglob("*.sh")]
    # 2329 takes functions for unused that a trap calls.
    sh(validator("shellcheck"), "--exclude=SC2329", *scripts)


def test_commands_in_manifests_exist(request):
    binary = request.config.getoption("toolvane").absolute()
    commands = set()
    for file in [*DEPLOY.rglob("*.yaml"), DEPLOY / "Dockerfile"]:
        commands |= set(re.findall(r'\[\s*"?/toolvane"?,\s*"?([a-z]+)"?', file.read_text()))
    assert {"drain", "healthcheck"} <= commands
    for command in commands - {"drain"}:
        sh(binary, command, "--help")
    known_commands.needs(binary, "drain")
