"""The site: built from shipped evidence, complete, escaped, the same every time."""

import base64
import dataclasses
import gzip
import json
import re
from pathlib import Path

import pytest
from pages_of_sites import check_claims, check_counts, check_links, check_recordings, pages_of

from paritylab import Learner, Parity, Protocol, Setup, Store, sweep
from paritylab.claims import evidence, registry
from paritylab.cli import build_parser, main, reference
from paritylab.site import build, content, documents, watch
from paritylab.storage import status
from paritylab.storage.kept import save_document
from paritylab.storage.records import Records

HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def site(whole_paper_all_along, tmp_path_factory):
    return build.build(tmp_path_factory.mktemp("nothing"), written=reference.pages())


@pytest.fixture(scope="module")
def pages(site):
    return pages_of(site)


def test_all_pages_are_there_and_every_link_leads_somewhere(site, pages):
    top = {"index.html", "me2025.html", "guesses.html", "play.html", "watch.html", "results.html"}
    names = ("index", "tutorial", "how-to/add-a-claim", "reference/api", "reference/cli", "explanation/engines",
             "explanation/theory/alignment")
    assert top | {f"docs/{name}.html" for name in names} <= set(pages)
    check_links(site, pages)


def test_the_results_shown_are_those_of_the_evidence(site):
    check_counts(site)
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    assert re.search(r"^paritylab reproduce (\S+) --quick( |$)", readme, re.MULTILINE)


def test_every_claim_with_evidence_has_its_figure_data_source_and_command(site):
    check_claims(site)
    assert "Not one network of width 10 was faster." in site["me2025.html"].decode()


def test_a_paper_may_bring_pages_with_scripts_and_data(site, pages):
    assert json.loads(site["data/guesses.js"].decode().split("=", 2)[2].rstrip(";\n")) == {
        "ids": ["me2025.guessing", "me2025.width"]}
    assert {"data/guesses.js", "assets/guesses.js"} <= set(pages["guesses.html"].links)
    assert "guesses.html" in pages["index.html"].links


def test_the_recorded_runs_are_small_and_their_commands_understood(site):
    check_recordings(site)
    (_, narrow), (_, both) = watch.recordings()
    panels = [watch.shipped()[recording.name]["panels"] for recording in (narrow, both)]
    assert [len(each) for each in panels] == [1, 2]
    assert panels[0][0]["accuracy"] == panels[1][0]["accuracy"]
    assert (panels[0][0]["n"], panels[0][0]["neurons"], panels[1][1]["neurons"]) == (8, 10, watch.NEURONS)


def test_a_recording_is_what_its_setup_gives(whole_paper, tmp_path):
    path, full = next(iter(watch.recordings()))
    short = json.loads(watch.record(dataclasses.replace(full, steps=full.steps[:2]), tmp_path / "short").read_text())
    shipped = json.loads(path.read_text())
    assert short["steps"] == shipped["steps"][:2]
    assert short["panels"][0]["accuracy"] == shipped["panels"][0]["accuracy"][:2]


def test_the_home_page_is_light(site, pages):
    needed = {"index.html", "assets/site.css", "assets/palette.css", "assets/site.js", "assets/theme.js"}
    learning = {f"assets/{name}.js" for name in ("plots", "setups", "lab", "twenty")}
    links = {link for link in pages["index.html"].links if link.startswith("assets/")}
    assert links == (needed - {"index.html"}) | learning
    assert sum(len(site[name]) for name in needed) < 45_000
    assert sum(len(site[name]) for name in learning) < 40_000


def test_the_same_evidence_gives_the_same_bytes_and_no_path_of_this_machine(site, tmp_path):
    again = build.build(tmp_path, written=reference.pages())
    assert {name: data for name, data in again.items() if site[name] != data} == {}
    here = str(content.Path(build.__file__).parents[3])
    for name, data in again.items():
        if not name.endswith((".parquet", ".png")):
            text = (gzip.decompress(data) if name.endswith(".gz") else data).decode()
            assert str(tmp_path) not in text, name
            assert here not in text, name
            assert not re.search(r"/(home|root|Users)/\w", text), name


def test_mathematics_is_drawn_by_the_browser_itself(site):
    for document in documents.documents({}):
        assert "$$" not in document.body
        assert "merror" not in document.body
    assert "<math" in site["docs/explanation/theory/alignment.html"].decode()
    assert "\N{MATHEMATICAL DOUBLE-STRUCK CAPITAL E}" in site["docs/explanation/theory/alignment.html"].decode()


def test_pages_with_formulas_and_no_others_bring_the_font_which_has_its_licence(site, pages):
    for name, page in pages.items():
        brings = any(link.endswith("assets/math.css") for link in page.links)
        assert brings == ("math" in page.tags), name
    style = site["assets/math.css"].decode()
    (data,) = re.findall(r'url\("data:font/woff2;base64,([^"]+)"\)', style)
    assert base64.b64decode(data).startswith(b"wOF2")
    assert len(style) < 150_000
    assert "math-license.txt" in style
    assert b"GUST Font License" in site["assets/math-license.txt"]
    assert b"LaTeX Project Public License" in site["assets/math-license.txt"]


def test_the_commands_of_the_tutorial_are_understood():
    text = (documents.directory() / "tutorial.md").read_text(encoding="utf-8")
    commands = re.findall(r"^paritylab (.*)$", text, flags=re.MULTILINE)
    assert len(commands) >= 10
    for command in commands:
        if command != "--version":
            build_parser().parse_args(command.split())
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        compile(block, "tutorial", "exec")


def hostile_out(tmp_path, monkeypatch):
    """Results and records whose every text is an attack."""
    known = registry.registry()["me2025.width"]
    claim = dataclasses.replace(known, title=HOSTILE, statement=HOSTILE, published=HOSTILE)
    monkeypatch.setattr(content, "registry", lambda: registry.registry() | {claim.id: claim})
    monkeypatch.setitem(known.paper.remarks, claim.id, HOSTILE)
    entry = {name: value for name, value in evidence.shipped(claim.id)["quick"].items() if name != "digest"}
    entry |= {"note": HOSTILE, "numbers": {HOSTILE: 1.0}, "hardware": HOSTILE, "parameters": {HOSTILE: HOSTILE},
              "checks": [dict(entry["checks"][0], name=HOSTILE, rule=HOSTILE)]}
    for size in evidence.SIZES:
        save_document(evidence.local_directory(tmp_path, claim.id, size) / "result.json", entry | {"size": size})
    setup = json.loads(Setup(Parity(n=8, k=2)).to_json())
    setup["learner"]["network"] = {"type": HOSTILE}
    setup["problem"]["n"] = HOSTILE
    block = Records([0, 1], [0, 1], [120, -1], [120, 500], [1.0, 0.5], [0.0, 1.0])
    Store(tmp_path / "store").append("4f2a", json.dumps(setup), "jax", 0, block)
    Store(tmp_path / "store").append("beef", json.dumps({"type": "setup", "learner": HOSTILE}), "jax", 0, block)


def test_text_from_claims_and_store_is_escaped(tmp_path, monkeypatch):
    hostile_out(tmp_path, monkeypatch)
    site = build.build(tmp_path, written=reference.pages())
    seen = 0
    for name, data in site.items():
        if name.endswith((".html", ".js")):
            text = data.decode()
            assert "<script>alert" not in text, name
            assert "<img src=x" not in text, name
            seen += text.count("&lt;script&gt;alert")
    assert seen > 8
    assert "&lt;script&gt;" in site["results.html"].decode()


def test_report_writes_the_site_and_rewrites_only_what_changed(tmp_path, capsys):
    assert main(["report", "--json", "--out", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    index = content.Path(told["index"])
    assert index == tmp_path / "site" / "index.html"
    assert told["bytes"] == sum(path.stat().st_size for path in (tmp_path / "site").rglob("*") if path.is_file())
    before = index.stat().st_mtime_ns
    (tmp_path / "site" / "watch.html").write_text("damaged")
    build.report(tmp_path)
    assert index.stat().st_mtime_ns == before
    assert b"scrub" in (tmp_path / "site" / "watch.html").read_bytes()


# --- live -------------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_sweep_is_announced_while_it_trains_and_not_afterwards(tmp_path, monkeypatch):
    seen = []
    train = status.Announcement.train

    def spy(self, group):
        train(self, group)
        seen.extend(status.sweeps(tmp_path))

    monkeypatch.setattr(status.Announcement, "train", spy)
    protocol = Protocol(max_steps=200, eval_size=64)
    setups = [Setup(Parity(n=6, k=2), Learner(batch=batch), protocol) for batch in (16, 32)]
    sweep(setups, runs=3, engine="jax", store=Store(tmp_path))
    states = [[job["state"] for job in each["jobs"]] for each in seen]
    assert states == [["queued", "queued"], ["running", "queued"], ["done", "running"]]
    assert list(status.sweeps(tmp_path)) == []
    assert not (tmp_path / status.FOLDER).exists()
    seen.clear()
    sweep(setups, runs=3, engine="jax", store=Store(tmp_path))
    assert seen == []  # nothing was missing


def test_a_process_that_died_is_not_going_on(tmp_path):
    with status.Announcement(tmp_path, [{"setup_id": "4f2a"}]):
        (path,) = (tmp_path / status.FOLDER).glob("*.json")
        told = json.loads(path.read_text())
        path.write_text(json.dumps(told | {"pid": 2**22 + 1}))
        assert list(status.sweeps(tmp_path)) == []
        with status.Announcement(tmp_path, []):
            assert not path.exists()
