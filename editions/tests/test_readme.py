"""The README's examples run as they are printed."""

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"


@pytest.mark.long
def test_the_python_examples_of_the_readme_run_in_order():
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert len(blocks) == 4
    names: dict = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), names)
    assert names["result"].summary.solved == 1000
    assert "median t_c 450" in str(names["result"])  # the README prints it


def test_the_commands_of_the_readme_are_understood():
    from paritylab.cli import build_parser

    text = README.read_text(encoding="utf-8")
    commands = re.findall(r"^paritylab (.*)$", text, flags=re.MULTILINE)
    assert commands
    for command in commands:
        build_parser().parse_args(command.split())
