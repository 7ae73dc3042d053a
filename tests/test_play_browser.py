"""The page "Play" in a real browser: choose, run, pause, share, download, merge. Nothing leaves this machine."""

import json
import threading

import pytest
from browsing import watched

from paritylab import Parity, Protocol, Setup, Store, places
from paritylab.cli import main
from paritylab.engines import label
from paritylab.running import downloads
from paritylab.site import build, pages, serve

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("whole_paper_all_along")]
SMALL = 300_000


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The page with all it needs, and nothing else of the site."""
    folder, site = tmp_path_factory.mktemp("play"), build.Site()
    pages.played(site)
    for name, data in site.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def opened(page, root, hash=""):
    page.goto((root / "play.html").as_uri() + hash)


def solved(page):
    """How many networks are solved, and at which step."""
    return int(page.inner_text("#c-solved").split()[0].replace(",", "")), int(
        page.inner_text("#c-step").replace(",", "")
    )


def finish(page):
    page.wait_for_selector(".stage[data-state=done]", timeout=60_000)


def downloaded(page, folder):
    with page.expect_download() as found:
        page.click("#download")
    path = folder / "records.json"
    found.value.save_as(path)
    return path


def test_networks_learn_pause_and_go_on_step_by_step(page, root):
    opened(page, root)
    page.wait_for_function("document.getElementById('c-step').textContent !== '0'")
    page.click("#run")
    assert page.inner_text("#run") == "Run"
    page.wait_for_timeout(300)
    _, at = solved(page)
    page.wait_for_timeout(200)
    assert solved(page)[1] == at
    page.click("#step")
    page.wait_for_function(f"document.getElementById('c-step').textContent === '{at + 1:,}'")
    tile = page.evaluate("document.getElementById('wall').toDataURL()")
    page.focus("#wall")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.getElementById('which').textContent === '1'")
    assert page.evaluate("document.getElementById('wall').toDataURL()") != tile
    page.select_option("#speed", "fast")
    page.click("#run")
    finish(page)
    assert solved(page)[0] == 256
    assert "solved at step" in page.inner_text("#now")


@pytest.mark.parametrize("speed", ["1", "fast"])
def test_networks_wait_while_the_tab_is_hidden(page, root, speed):
    """Browsers give a hidden page no frames, and say so; both are played here, where no page is ever hidden."""
    page.add_init_script("""
        let hidden = false, waiting = [];
        const asked = window.requestAnimationFrame.bind(window);
        window.requestAnimationFrame = (draw) => (hidden ? waiting.push(draw) : asked(draw));
        Object.defineProperty(document, "hidden", { get: () => hidden });
        window.hide = (value) => { hidden = value; if (!hidden) waiting.splice(0).forEach(asked); };
        const post = Worker.prototype.postMessage;
        window.questions = 0;
        Worker.prototype.postMessage = function (...words) { window.questions++; return post.apply(this, words); };
    """)
    opened(page, root)
    page.fill("[name=n]", "40")
    page.fill("[name=k]", "4")
    page.select_option("#speed", speed)
    page.click("#choices .main")
    page.wait_for_function("document.getElementById('c-step').textContent !== '0'")
    page.evaluate("hide(true)")
    page.wait_for_timeout(400)  # what workers were asked before may end
    before = page.evaluate("questions")
    page.wait_for_timeout(400)
    assert page.evaluate("questions") == before
    page.evaluate("hide(false)")
    page.wait_for_function(f"questions > {before}")


def test_what_is_chosen_is_in_the_address_and_the_code_and_its_records_can_be_merged(page, root, tmp_path, capsys):
    opened(page, root)
    page.fill("[name=n]", "12")
    page.fill("[name=k]", "2")
    page.fill("[name=count]", "40")
    page.fill("[name=seed]", "7")
    page.fill("[name=steps]", "3000")
    page.select_option("#speed", "fast")
    page.click("#choices .main")
    finish(page)
    setup = Setup(Parity(12, 2), Setup(Parity(12, 2)).learner.__class__(optimiser=_sgd(1.0)), Protocol(3000, 10, 128))
    address = page.evaluate("document.getElementById('share').dataset.copy")
    path = downloaded(page, tmp_path)
    found, engine, seed, records = downloads.read(path)
    assert (found, engine, seed, len(records)) == (setup, label("lanes"), 7, 40)
    with watched(page.context.browser) as other:
        other.goto(address)
        other.select_option("#speed", "fast")
        finish(other)
        (tmp_path / "again").mkdir()
        again = json.loads(downloaded(other, tmp_path / "again").read_text())
    assert again == json.loads(path.read_text())
    main(["store", "merge", str(path), "--out", str(tmp_path / "out"), "--json"])
    assert json.loads(capsys.readouterr().out)["added"] == 40
    assert len(Store(tmp_path / "out" / "store").records(setup.id, label("lanes"), 7)) == 40
    words = page.inner_text("#shell").split()
    assert words[:2] == ["paritylab", "measure"]
    main([*words[1:], "--out", str(tmp_path / "out"), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert told["results"][0]["setup_id"] == setup.id if "results" in told else setup.id in json.dumps(told)


def _sgd(lr):
    from paritylab import SGD

    return SGD(lr)


def test_every_experiment_starts_and_keeps_earlier_curves(page, root):
    opened(page, root)
    names = page.evaluate("window.paritylab.play.map(each => each.name)")
    assert names == ["widths"]
    for name in names:
        page.click(f"[data-experiment={name}] >> nth=0")
        page.wait_for_selector(".stage:is([data-state=running], [data-state=done])", timeout=60_000)
        assert page.is_hidden("#problem"), page.inner_text("#problem")
    page.click("[data-experiment=widths] >> nth=0")
    page.select_option("#speed", "fast")
    finish(page)
    page.click("[data-experiment=widths] >> nth=1")
    page.wait_for_function("document.querySelectorAll('#legend li').length === 3")


def test_without_experiments_the_networks_that_are_chosen_learn(page, tmp_path, monkeypatch):
    monkeypatch.delenv(places.VARIABLE)
    site = build.Site()
    pages.played(site)
    for name, data in site.files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    opened(page, tmp_path)
    assert page.evaluate("window.paritylab.play.length") == 0
    page.wait_for_function("document.getElementById('c-step').textContent !== '0'")


def test_what_cannot_be_trained_is_said_in_a_line(page, root):
    opened(page, root)
    page.fill("[name=activation]", "tanh")
    page.click("#choices .main")
    page.wait_for_selector("#problem:not([hidden])")
    assert page.inner_text("#problem") == "the browser's engine has no activation tanh"
    for again in (False, True):
        opened(page, root, "#setup=%7B")
        if again:
            page.reload()
        page.wait_for_selector("#problem:has-text('cannot be read')")


def test_the_page_is_small_and_draws_while_workers_train(page, root):
    """Frames are short because nothing is trained where pages are drawn; how short, benchmarks/web.py measures."""
    asked = set()
    page.on("request", lambda request: asked.add(request.url.partition("#")[0]))
    opened(page, root)
    page.wait_for_function("document.getElementById('c-step').textContent !== '0'")
    files = [url.removeprefix(root.as_uri() + "/") for url in asked if url.startswith("file:")]
    assert {"play.html", "data/engine.js", "data/engine-fused.js", "assets/play.js"} <= set(files)
    assert sum((root / name).stat().st_size for name in files) < SMALL


def test_it_works_on_the_server_under_its_content_policy(browser, tmp_path):
    server = serve.server(tmp_path)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with watched(browser) as page:
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/play.html")
            page.wait_for_selector("#c-step:not(:text-is('0'))")
            page.goto(f"http://127.0.0.1:{server.server_address[1]}/index.html")
            page.wait_for_selector("#twenty-said:text-matches('step [1-9]')")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
