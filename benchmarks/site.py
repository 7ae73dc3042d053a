"""How long the site takes: to build, to its first paint from disk, and to draw one frame of a recorded run.

    python benchmarks/site.py        needs Playwright and Debian's Chromium
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from paritylab.site import build

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
FRAMES = """() => {
    const scrub = document.getElementById("scrub"), times = [];
    for (let i = 1; i <= Number(scrub.max); i++) {
        const start = performance.now();
        scrub.value = i;
        scrub.dispatchEvent(new Event("input"));
        times.push(performance.now() - start);
    }
    return times;
}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        start = time.perf_counter()
        written = build.report(Path(folder))
        print(f"build: {time.perf_counter() - start:.1f} s for {len(written)} files (at most 20)")
        page = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=FLAGS).new_page()
        paints = []
        for _ in range(5):
            page.goto(written["index.html"].as_uri())
            page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
            paints.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        print(f"first paint of the home page: {statistics.median(paints):.0f} ms (at most 1000)")
        for name in ("plateau", "grokking", "xor", "starts"):
            page.goto("about:blank")
            page.goto(f"{written['watch.html'].as_uri()}#{name}")
            page.wait_for_function("document.getElementById('step').textContent !== ''")
            times = sorted(page.evaluate(FRAMES))
            median, slow = statistics.median(times), times[int(0.99 * len(times))]
            print(f"a frame of {name}: median {median:.2f} ms, 99 % {slow:.2f} ms (60 a second: 16.7)")


if __name__ == "__main__":
    main()
