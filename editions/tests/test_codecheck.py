"""The files for a codecheck are those of the evidence that counts."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_every_file_of_the_codecheck_is_made_by_the_command_beside_it():
    """The command is the one that the site and archives print for the evidence that counts."""
    from paritylab.claims.pages import command
    from paritylab.claims.registry import registry
    from paritylab.claims.standing import standing

    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    text = (ROOT / "codecheck.yml").read_text(encoding="utf-8")
    assert "\n---\n" in text
    for item in yaml.safe_load(text)["manifest"]:
        path = ROOT / item["file"]
        assert path.is_file()
        claim = registry()[path.stem]
        stands = standing(Path("nowhere"), claim)
        assert path.stem == stands.claim.id
        assert path.suffix == ".svg" or command(claim, stands.found) in item["comment"]
