"""The injection policy decides for the right pods. The conditions and variables are evaluated by a CEL runtime over pods as data;
the types of the Kubernetes API, and so the merge itself, only exist in an API server and are not checked here."""

import json
import re

import pytest
import yaml
from tools import REPO

pytestmark = pytest.mark.verify

POLICY, *_ = yaml.safe_load_all((REPO / "deploy" / "inject" / "mutatingadmissionpolicy.yaml").read_text())
SPEC = POLICY["spec"]


def evaluate(expression, **data):
    from cel_expr_python import cel

    environment = cel.NewEnv(variables={name: cel.Type.DYN for name in data})
    return environment.compile(expression).eval(data=data).value()


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        ({"spec": {}}, True),
        ({"spec": {"initContainers": [{"name": "migrate"}]}}, True),
        ({"spec": {"initContainers": [{"name": "migrate"}, {"name": "toolvane"}]}}, False),
    ],
)
def test_a_pod_that_has_the_sidecar_already_is_left_alone(pod, wanted):
    [condition] = SPEC["matchConditions"]
    assert evaluate(condition["expression"], object=pod) is wanted


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({}, "toolvane"),
        ({"annotations": {"other": "x"}}, "toolvane"),
        ({"annotations": {"toolvane.io/config": "jira-toolvane"}}, "jira-toolvane"),
    ],
)
def test_an_annotation_names_the_configuration(metadata, name):
    [variable] = SPEC["variables"]
    assert evaluate(variable["expression"], object={"metadata": metadata}) == name


def test_the_whole_mutation_is_an_expression_that_a_runtime_reads():
    expression = SPEC["mutations"][0]["applyConfiguration"]["expression"]
    # Typed objects become maps; everything else stays as it is.
    text = re.sub(r"Object[.\w]*\{", "{", expression)
    text = re.sub(r"(?<=[{,\s])(\w+):(?=\s)", r'"\1":', text)
    parameters = {"data": {"image": "i", "cpuRequest": "1m", "memoryRequest": "1Mi", "memoryLimit": "2Mi"}}
    checked = evaluate(f"size({text}.spec.volumes) == 2", params=parameters, variables={"config": "c"})
    assert checked is True
    assert evaluate(f'{text}.spec.volumes[0].configMap.name == "c"', params=parameters, variables={"config": "c"})


def test_failure_of_the_policy_lets_the_pod_start():
    assert SPEC["failurePolicy"] == "Ignore"
    assert SPEC["matchConstraints"]["objectSelector"]["matchLabels"] == {"toolvane.io/inject": "true"}
    assert json.dumps(SPEC["matchConstraints"]["resourceRules"]).count("CREATE") == 1
