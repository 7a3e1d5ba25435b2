"""Commands that manifests and documents rely on, and that not every build of toolvane has."""

import subprocess

import pytest


def has(binary, command):
    """Whether the program knows the command."""
    return subprocess.run([binary, command, "--help"], capture_output=True).returncode == 0


def needs(binary, command):
    """Leaves the test out, and says why, where the program does not know the command."""
    if not has(binary, command):
        pytest.skip(f"this toolvane has no command {command}")
