"""``paritylab doctor``: what it says of engines that work, that are absent and that fail."""

from __future__ import annotations

import json

from commands import run

from paritylab.cli import doctor
from paritylab.engines import rates, warps


def test_every_engine_is_timed_or_said_to_be_absent(capsys, monkeypatch):
    monkeypatch.setattr(warps, "absence", lambda: "engine 'warps' needs a GPU")
    asked = []
    monkeypatch.setattr(rates, "steady_rate", lambda name, seconds: asked.append((name, seconds)) or 1234.0)
    status, out, err = run(capsys, "doctor", "--json", "--seconds", "0.5")
    found = json.loads(out)
    by_name = {each["engine"]: each for each in found["engines"]}
    assert (status, err) == (0, "")
    assert by_name["warps"] == {"engine": "warps", "works": False, "why": "engine 'warps' needs a GPU", "rate": None,
                                "build": None}
    assert by_name["jax"]["works"]
    assert by_name["jax"]["rate"] == 1234
    assert "jaxlib" in by_name["jax"]["build"]
    assert by_name[found["auto"]]["works"]
    assert ("jax", 0.5) in asked
    assert "warps" not in dict(asked)


def test_an_engine_that_fails_says_why(capsys, monkeypatch):
    def fail(name, seconds):
        raise RuntimeError("out of\nluck")

    monkeypatch.setattr(rates, "steady_rate", fail)
    status, out, _ = run(capsys, "doctor")
    assert status == 0
    assert "jax: it fails: " in out
    assert "out of" in out
    assert [line.split() for line in out.splitlines() if line.startswith("jax ")] == [["jax", "no", "-", "-"]]


def test_a_gpu_that_jax_does_not_use_is_pointed_out(monkeypatch, tmp_path):
    monkeypatch.setattr(doctor, "DRIVER", tmp_path / "missing")
    assert doctor.hints() == []
    monkeypatch.setattr(doctor, "DRIVER", tmp_path)
    monkeypatch.setattr("jax.default_backend", lambda: "cpu")
    assert "jax[cuda13]" in doctor.hints()[0]
    monkeypatch.setattr("jax.default_backend", lambda: "gpu")
    assert doctor.hints() == []


def test_seconds_must_be_a_length_of_time(capsys):
    for text in ("0", "-1", "nan", "long"):
        status, _, err = run(capsys, "doctor", "--seconds", text)
        assert status == 2
        assert err.count("\n") == 1
