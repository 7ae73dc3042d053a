"use strict";
// Networks that learn in this browser: workers with the native engine, all networks in step.
window.lab = (() => {
  const loaded = window.paritylab ??= {};
  const MOST_WORKERS = 4, SURVEYED = 64, TURN = 50, LEAST = 5; // inputs that networks are asked about; milliseconds and steps of a turn at full speed

  const script = (name) => new Promise((resolve, reject) => { // pages opened from disk may read scripts, and nothing else
    if (loaded[name]) { resolve(loaded[name]); return; }
    const node = document.createElement("script");
    node.src = `${document.body.dataset.root ?? ""}data/${name}.js`;
    node.onload = () => resolve(loaded[name]);
    node.onerror = () => reject(new Error(`cannot read ${node.src}`));
    document.head.append(node);
  });
  const decoded = (text) => Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));

  // A worker that is asked one question after the other.
  const hire = (source) => {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" })), worker = new Worker(address);
    let answered = null, last = Promise.resolve();
    worker.onmessage = ({ data }) => answered(data);
    worker.onerror = (event) => answered?.({ refused: event.message });
    const ask = (question) => new Promise((resolve, reject) => {
      answered = (data) => (data.refused ? reject(new Error(data.refused)) : resolve(data));
      worker.postMessage(question);
    });
    return (question) => { const answer = last.then(() => ask(question)); last = answer.catch(() => {}); return answer; };
  };

  // All workers with the best module that the browser has; they stay for the life of the page.
  let staff = null;
  const hired = () => staff ??= (async () => {
    if (typeof WebAssembly !== "object" || typeof DecompressionStream !== "function") throw new Error("This browser has no WebAssembly SIMD, which the engine needs; any of 2023 or later has it.");
    const { worker } = await script("engine"), count = Math.max(1, Math.min(MOST_WORKERS, navigator.hardwareConcurrency ?? 2));
    for (const isa of ["fused", "baseline"]) {
      const packed = decoded(await script(`engine-${isa}`)), first = hire(worker);
      try {
        await first({ do: "load", isa, packed });
      } catch (error) {
        if (isa === "baseline") throw error;
        continue;
      }
      const others = Array.from({ length: count - 1 }, () => hire(worker));
      return { isa, packed, ready: [first], others };
    }
  })();
  const crew = async (wanted) => {
    const all = await hired();
    while (all.ready.length < wanted && all.others.length) {
      const next = all.others.shift();
      await next({ do: "load", isa: all.isa, packed: all.packed });
      all.ready.push(next);
    }
    return all;
  };

  // Networks of one Setup: numbers first, ..., first + count - 1 of a seed.
  let opened = 0; // times: workers have the networks of the last
  const open = async ({ setup, seed = 0, count, first = 0 }) => {
    const mine = ++opened;
    const share = Math.max(4, Math.ceil(count / MOST_WORKERS / 4) * 4);
    const all = await crew(Math.ceil(count / share)), hands = all.ready.slice(0, Math.ceil(count / share));
    const size = Math.ceil(count / hands.length / 4) * 4;
    const numbers = hands.map((_, i) => Array.from({ length: Math.max(0, Math.min(size, count - i * size)) }, (_, j) => first + i * size + j));
    await Promise.all(hands.map((ask, i) => ask({ do: "open", setup, seed, runs: numbers[i] })));
    const networks = { count, seed, setup, isa: all.isa, step: 0, left: count, made: 0, accuracy: new Float32Array(count).fill(0.5), loss: new Float32Array(count).fill(NaN), train_accuracy: new Float32Array(count).fill(NaN), records: new Array(count).fill(null), look: null, pace: LEAST };

    // Gives all networks so many steps ("fast": as many as fill a turn) and brings the arrays up to date.
    networks.train = async (steps, look = null) => {
      if (mine !== opened) return networks;
      const began = performance.now(), asked = steps === "fast" ? Math.round(networks.pace) : steps;
      const answers = await Promise.all(hands.map((ask, i) => ask({ do: "train", steps: asked, examples: SURVEYED, finite: Boolean(setup.problem.sample), look: look !== null && numbers[i].includes(first + look) ? first + look : null })));
      const taken = performance.now() - began;
      if (steps === "fast") networks.pace = Math.min(Math.max(networks.pace * Math.min(4, Math.max(0.25, TURN / Math.max(taken, 1))), LEAST), 1e6);
      networks.step += asked;
      networks.left = 0;
      for (const { left, done, run, told, weights, start } of answers) {
        networks.left += left;
        run.forEach((number, i) => { networks.accuracy[number - first] = told[3 * i]; networks.loss[number - first] = told[3 * i + 1]; networks.train_accuracy[number - first] = told[3 * i + 2]; });
        for (const record of done) {
          const at = record.run - first;
          networks.records[at] = record;
          networks.accuracy[at] = record.accuracy;
          networks.loss[at] = record.loss;
        }
        if (weights) networks.look = { of: look, weights, start };
      }
      networks.made = networks.records.reduce((sum, record) => sum + (record ? record.steps : networks.step), 0);
      return networks;
    };
    return networks;
  };
  return { open };
})();
