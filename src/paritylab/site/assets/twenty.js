"use strict";
// Twenty networks on the first page: they learn, stay lit for a while, and begin anew with another seed.
(() => {
  const canvas = document.getElementById("twenty"), said = document.getElementById("twenty-said"), figure = canvas.closest("figure");
  const STEPS = 2, REST = 4000; // a frame; milliseconds
  const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const frame = () => new Promise(requestAnimationFrame); // none while the page is hidden
  const run = async (seed) => {
    const networks = await lab.open({ setup: setups.blank(), seed, count: 20 });
    for (await networks.train(0); ; await networks.train(STEPS)) {
      plots.wall(canvas, networks, null, canvas.clientWidth > 600 ? 36 : 70); // one row, or two
      const solved = networks.records.filter((record) => record?.status === "solved").length;
      said.textContent = networks.left ? `Twenty neural networks are learning the product of three hidden bits out of thirty, in your browser, now: step ${networks.step}, ${solved} solved.` : `Twenty neural networks have learned the product of three hidden bits out of thirty, in your browser, just now: ${solved} solved, the last at step ${networks.step}.`;
      if (networks.left === 0) return;
      await frame();
    }
  };
  (async () => {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) { figure.hidden = true; return; }
    try {
      for (let seed = 0; seed < 3; seed++) { await run(seed); await wait(REST); } // then quiet
    } catch (error) { canvas.hidden = true; said.textContent = error.message; }
  })();
})();
