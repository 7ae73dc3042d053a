"""The page "Play" beside its bars: the first step after opening, frames while networks train, 500 networks to the end.

    python benchmarks/play.py        needs Playwright and Chromium
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))
OPENINGS, SECONDS = 10, 5
WATCHED = """seconds => new Promise(resolve => {
    const gaps = [], began = performance.now();
    let last = began;
    const frame = (now) => {
        gaps.push(now - last);
        last = now;
        if (now - began < 1000 * seconds) requestAnimationFrame(frame); else resolve(gaps.slice(1));
    };
    requestAnimationFrame(frame);
})"""
MOVED = """() => new Promise(resolve => {
    const step = () => Number(document.getElementById("c-step")?.textContent ?? 0);
    const look = () => (step() > 0 ? resolve(performance.now()) : setTimeout(look, 2));
    look();
})"""
TIMED = """() => new Promise(resolve => {
    const began = performance.now(), stage = document.querySelector(".stage");
    document.querySelector("#choices .main").click();
    const done = () => resolve((performance.now() - began) / 1000);
    const look = () => (stage.dataset.state === "done" ? done() : setTimeout(look, 5));
    setTimeout(look, 20);
})"""


def main() -> None:
    from playwright.sync_api import sync_playwright
    from test_site_browser import FLAGS, chromium

    from paritylab.site import build, pages

    site = build.Site()
    pages.played(site)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        for name, data in site.files.items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(data)
        address = (Path(folder) / "play.html").as_uri()
        browser = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        firsts = []
        for _ in range(OPENINGS):
            page = browser.new_context().new_page()
            page.goto(address, wait_until="commit")
            firsts.append(page.evaluate(MOVED) / 1000)
            page.context.close()
        told("first step after opening, seconds", firsts)
        page = browser.new_page()
        page.goto(address)
        for speed in ("1", "fast"):
            page.fill("[name=k]", "4")  # longer than it is watched
            page.fill("[name=n]", "40")
            page.select_option("#speed", speed)
            page.click("#choices .main")
            page.wait_for_selector(".stage[data-state=running]")
            page.wait_for_timeout(500)
            told(f"between frames, milliseconds, speed {speed}", page.evaluate(WATCHED, SECONDS))
        page.fill("[name=n]", "30")
        page.fill("[name=k]", "3")
        page.fill("[name=count]", "500")
        page.select_option("#speed", "fast")
        told("500 networks of (30, 3) to the end, seconds", [page.evaluate(TIMED) for _ in range(5)])
        browser.close()


def told(what: str, values: list[float]) -> None:
    ordered = sorted(values)
    found = {"median": statistics.median(ordered), "99 %": ordered[int(0.99 * len(ordered))], "most": ordered[-1]}
    print(json.dumps({"what": what, "of": len(ordered)} | {name: round(value, 3) for name, value in found.items()}))


if __name__ == "__main__":
    main()
