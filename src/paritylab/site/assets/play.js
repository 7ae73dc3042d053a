"use strict";
// The page "Play": what the reader chooses is a Setup; networks of it learn in step, and every frame shows all of them.
(() => {
  const $ = (id) => document.getElementById(id), experiments = window.paritylab.play, MOST_TICKS = 600, MOST_EARLIER = 4;
  const form = $("choices"), count = (value) => Math.round(value).toLocaleString("en");
  let state = { setup: setups.blank(), count: 256, seed: 0 }, label = "", measured = null;
  let networks = null, running = false, busy = false, turn = 0, chosen = 0, grid = null;
  let settled = Promise.resolve(); // when the workers are done with what they were asked
  let earlier = [], ticks = [], path = [], began = 0, worked = 0, said = 0;

  // --- the whole picture ---
  const survival = (records, step) => {
    const times = records.filter((record) => record?.status === "solved").map((record) => record.t_c).sort((a, b) => a - b);
    return { x: [0, ...times, step], y: [1, ...times.map((_, i) => 1 - (i + 1) / records.length), 1 - times.length / records.length] };
  };
  const paint = () => {
    if (!networks) return;
    grid = plots.wall($("wall"), networks, chosen);
    const live = survival(networks.records, networks.step), series = [], solved = networks.records.filter((record) => record?.status === "solved").length;
    if (measured) series.push({ x: measured.steps, y: measured.high, fill: measured.low, colour: plots.ink("soft"), stairs: true }, { x: measured.steps, y: measured.unsolved, colour: plots.ink("soft"), width: 1, stairs: true });
    earlier.forEach((each) => series.push({ ...each.curve, colour: plots.ink(`series-${each.colour}`), dash: [6, 3], stairs: true }));
    series.push({ ...live, colour: plots.ink("series-1"), width: 2.6, stairs: true });
    const past = [...earlier.map((each) => each.curve.x.at(-1)), measured ? measured.steps.at(-1) : 0].map((end) => Math.min(end, 4 * networks.step + 2000));
    plots.curves($("survival"), { right: Math.max(100, networks.step * 1.02, ...past), label: "steps", series });
    plots.histogram($("histogram"), networks.accuracy);
    inside();
    $("c-solved").textContent = `${count(solved)} of ${count(networks.count)}`;
    $("c-step").textContent = count(networks.step);
    $("c-made").textContent = count(networks.made);
    $("c-rate").textContent = worked > 0 ? Number(((networks.made / worked) * 1000).toPrecision(2)).toLocaleString("en") : "0";
    $("wall").setAttribute("aria-label", `${networks.count} networks as tiles, ${solved} solved at step ${networks.step}. Arrow keys choose one; network ${chosen} is chosen.`);
    if (performance.now() - said > 4000 || networks.left === 0) { said = performance.now(); $("said").textContent = `Step ${networks.step}: ${solved} of ${networks.count} networks solved.`; }
  };
  const legend = () => {
    const items = [["series-1", label || "these networks"], ...(measured ? [["soft", `${measured.runs} others, measured, with a 95 % band`]] : []), ...earlier.map((each) => [`series-${each.colour}`, each.label])];
    $("legend").replaceChildren(...items.map(([name, text]) => {
      const item = document.createElement("li"), key = document.createElement("span");
      key.className = "key";
      key.style.background = `var(--${name})`;
      item.append(key, ` ${text}`);
      return item;
    }));
  };

  // --- one network ---
  const shape = () => {
    const { network } = state.setup.learner, units = [network.width ?? network.degree ?? 1].flat()[0];
    return { n: state.setup.problem.n, units };
  };
  // How far the weights of the bits that matter have moved, and those of the others: root mean squares.
  const moved = ({ weights, start }) => {
    const { n, units } = shape(), p = state.setup.problem, support = new Set(p.support ?? p.target?.support ?? p.target?.places ?? p.target?.terms?.flatMap(([, s]) => s) ?? []);
    const sums = [0, 0], sizes = [0, 0];
    for (let j = 0; j < n; j++) {
      const part = support.has(j) ? 0 : 1;
      sizes[part] += units;
      for (let u = 0; u < units; u++) sums[part] += (weights[j * units + u] - start[j * units + u]) ** 2;
    }
    return sums.map((sum, i) => (sizes[i] ? Math.sqrt(sum / sizes[i]) : NaN));
  };
  const inside = () => {
    const record = networks.records[chosen], finite = Boolean(state.setup.problem.sample), percent = (value) => `${(100 * value).toFixed(1)} %`;
    $("which").textContent = chosen;
    $("now").textContent = record ? `${record.status}${record.status === "solved" ? ` at step ${count(record.t_c)}` : ` at step ${count(record.steps)}`}; accuracy ${percent(record.accuracy)}, loss ${record.loss.toPrecision(3)}` : `training; accuracy ${percent(networks.accuracy[chosen])}${finite && networks.step ? `, on its own examples ${percent(networks.train_accuracy[chosen])}` : ""}${networks.step ? `, loss ${networks.loss[chosen].toPrecision(3)}` : ""}`;
    if (networks.look?.of === chosen) {
      const { n, units } = shape();
      plots.weights($("heat"), networks.look.weights, n, units);
    }
    const x = ticks.map((tick) => tick.step), right = Math.max(100, networks.step), top = 1;
    const most = (values) => Math.max(1e-9, ...values.filter(Number.isFinite)), loss = ticks.map((tick) => tick.loss[chosen]), high = most(loss);
    const own = path.filter((each) => each.of === chosen), far = most(own.flatMap((each) => each.moved));
    const series = [
      { name: "accuracy", x, y: ticks.map((tick) => tick.accuracy[chosen]), colour: 1, width: 2.4 },
      ...(finite ? [{ name: "accuracy on its own examples", x, y: ticks.map((tick) => tick.train_accuracy[chosen]), colour: 3, dash: [6, 3] }] : []),
      { name: `loss (top: ${Number(high.toPrecision(2))})`, x, y: loss.map((value) => value / high), colour: 2 },
      { name: "hidden progress: how far the weights of the bits that matter have moved", x: own.map((each) => each.step), y: own.map((each) => each.moved[0] / far), colour: 4, width: 2.2 },
      { name: "and of the others", x: own.map((each) => each.step), y: own.map((each) => each.moved[1] / far), colour: 4, dash: [2, 3] },
    ];
    plots.curves($("inside"), { right, top, label: "steps", height: 200, series: series.map((each) => ({ ...each, colour: plots.ink(`series-${each.colour}`) })) });
    const words = series.map((each) => each.name).join();
    if ($("inside-legend").dataset.words !== words) {
      $("inside-legend").dataset.words = words;
      $("inside-legend").replaceChildren(...series.map((each) => {
        const item = document.createElement("li"), key = document.createElement("span");
        key.className = each.dash ? "key dashed" : "key";
        key.style[each.dash ? "borderColor" : "background"] = `var(--series-${each.colour})`;
        item.append(key, ` ${each.name}`);
        return item;
      }));
    }
  };
  const choose = async (i) => {
    chosen = Math.max(0, Math.min(state.count - 1, i));
    if (!running && !busy && networks) await advance(0);
    paint();
  };

  // --- time ---
  const remember = () => {
    ticks.push({ step: networks.step, accuracy: networks.accuracy.slice(), loss: networks.loss.slice(), train_accuracy: networks.train_accuracy.slice() });
    if (ticks.length > MOST_TICKS) ticks = ticks.filter((_, i) => i % 2 === 0);
    if (networks.look?.of === chosen && networks.look.start) path.push({ of: chosen, step: networks.step, moved: moved(networks.look) });
    if (path.length > MOST_TICKS) path = path.filter((_, i) => i % 2 === 0);
  };
  const advance = (steps) => (settled = advanced(steps));
  const advanced = async (steps) => {
    const mine = turn, start = performance.now();
    busy = true;
    try { await networks.train(steps, chosen); } catch (error) { fail(error.message); }
    busy = false;
    if (mine !== turn) return false;
    if (steps !== 0) { worked += performance.now() - start; remember(); }
    return true;
  };
  const frame = async () => { // asked for by the browser, which does not ask while the page is hidden
    if (!running) return;
    const speed = $("speed").value, training = busy ? null : speed === "fast" ? race() : advance(Number(speed));
    paint(); // what there is, while workers train
    if (speed !== "fast") await training;
    if (networks?.left === 0) { stop(); paint(); }
    if (running) requestAnimationFrame(frame); else settled.then(paint);
  };
  const race = async () => { while (running && $("speed").value === "fast" && !document.hidden && networks?.left && (await advance("fast"))); }; // waits for no frame
  const stop = () => { running = false; settled.then(paint); $("run").textContent = "Run"; $("run").setAttribute("aria-pressed", "false"); be(networks?.left === 0 ? "done" : "paused"); };
  const be = (what) => { document.querySelector(".stage").dataset.state = what; }; // opening, running, paused, done or refused
  const go = () => {
    if (!networks || networks.left === 0 || running) return;
    running = true;
    be("running");
    $("run").textContent = "Pause";
    $("run").setAttribute("aria-pressed", "true");
    requestAnimationFrame(frame);
  };
  const fail = (text) => { stop(); be("refused"); $("problem").textContent = text; $("problem").hidden = false; };

  // --- a Setup from its beginning ---
  const fill = () => {
    for (const [name, [get]] of Object.entries(setups.controls)) {
      const field = form.elements[name], value = String(get(state.setup));
      if (field.tagName === "SELECT" && ![...field.options].some((option) => option.value === value)) field.add(new Option(value === "other" ? "as in the address" : value, value));
      field.value = value;
    }
    form.elements.count.value = state.count;
    form.elements.seed.value = state.seed;
    form.elements.activation.disabled = state.setup.learner.network.type === "polynet";
    form.elements.width.disabled = state.setup.learner.network.type === "neuron";
  };
  const tell = () => {
    const shell = setups.shell(state), hash = setups.toHash(state);
    history.replaceState(null, "", hash);
    $("share").dataset.copy = location.href;
    $("python").textContent = $("copy-python").dataset.copy = setups.python(state);
    $("shell").textContent = shell ?? "This Setup has no options of 'paritylab measure'; take the Python.";
    $("copy-shell").hidden = shell === null;
    $("copy-shell").dataset.copy = shell ?? "";
  };
  const open = async (then = true) => {
    const mine = ++turn;
    stop();
    be("opening");
    $("problem").hidden = true;
    if (networks?.step > 0 && networks.records.some((record) => record?.status === "solved")) {
      const used = new Set(earlier.map((each) => each.colour));
      earlier.push({ label: networks.label, curve: survival(networks.records, networks.step), colour: [2, 3, 4, 5, 6].find((each) => !used.has(each)) ?? 2 });
      earlier = earlier.slice(-MOST_EARLIER);
    }
    fill();
    tell();
    try {
      const made = await lab.open(state);
      if (mine !== turn) return;
      networks = made;
      networks.label = label || `n = ${state.setup.problem.n}, seed ${state.seed}`;
    } catch (error) {
      if (mine === turn) { networks = null; fail(error.message); }
      return;
    }
    [ticks, path, worked, said] = [[], [], 0, 0];
    chosen = Math.min(chosen, state.count - 1);
    $("rounding").textContent = !setups.exact(state.setup) ? "Start weights on a sphere can differ in their last bit from those in Python, where the processor takes their norms; so records can differ by rounding, and a network be solved at another check." : networks.isa === "fused" ? "Your browser rounds multiply-adds once, as processors with AVX2, AVX-512 or NEON do: records there are the same to the last bit." : "Your browser rounds products before they are added, as the kernel 'baseline' does; on a processor with AVX2, AVX-512 or NEON a record can differ by rounding, and a network be solved at another check.";
    legend();
    await advance(0);
    paint();
    be("paused");
    if (then) go();
  };

  $("run").addEventListener("click", () => (running ? stop() : networks?.left === 0 ? restart() : go()));
  const restart = () => { networks = null; open(); };
  $("restart").addEventListener("click", restart);
  $("reseed").addEventListener("click", () => { state.seed = (state.seed + 1) % 2 ** 32; open(); });
  $("step").addEventListener("click", async () => { stop(); await settled; if (networks?.left > 0 && (await advance(1))) paint(); });
  $("forget").addEventListener("click", () => { earlier = []; legend(); paint(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const setup = structuredClone(state.setup), numeric = new Set(["n", "k", "noise", "sample", "lr", "decay", "batch", "steps", "judged"]);
    for (const [name, [get, set]] of Object.entries(setups.controls)) {
      const field = form.elements[name], value = numeric.has(name) ? Number(field.value) : field.value;
      if (!field.disabled && String(get(setup)) !== field.value) set(setup, value);
    }
    state = { setup, count: Number(form.elements.count.value), seed: Number(form.elements.seed.value) };
    [label, measured] = ["", null];
    open();
    scrollTo({ top: 0, behavior: "smooth" });
  });
  const play = (name, variant, start = true) => {
    const experiment = experiments.find((each) => each.name === name), { label: told, setup, measured: curve } = experiment.variants[variant];
    state = { setup: structuredClone(setup), count: experiment.runs, seed: state.seed };
    if (!start || !label.startsWith(experiment.title)) { earlier = []; networks = null; }
    [label, measured] = [`${experiment.title}: ${told}`, curve];
    $("speed").value = experiment.speed;
    open(start);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-experiment]");
    if (!button) return;
    play(button.dataset.experiment, Number(button.dataset.variant));
    document.querySelector(".playbar").scrollIntoView({ behavior: "smooth", block: "start" });
  });
  $("wall").addEventListener("click", (event) => {
    const box = $("wall").getBoundingClientRect(), i = grid?.at(event.clientX - box.left, event.clientY - box.top);
    if (Number.isInteger(i)) choose(i);
  });
  $("wall").addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: grid?.columns, ArrowUp: -grid?.columns }[event.key];
    if (!by) return;
    event.preventDefault();
    choose(chosen + by);
  });
  $("download").addEventListener("click", () => {
    if (!networks) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([setups.records(state, networks)], { type: "application/json" }));
    link.download = "records.json";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  document.addEventListener("themechange", paint);
  addEventListener("resize", paint);
  const read = () => { // whether the address has a Setup; null if it has something else
    try {
      const asked = setups.fromHash(location.hash);
      if (!asked) return false;
      state = asked;
      [label, measured] = ["", null];
      const same = experiments.flatMap((each) => each.variants.map((variant) => ({ each, variant }))).find(({ variant }) => JSON.stringify(sorted(variant.setup)) === JSON.stringify(sorted(asked.setup)));
      if (same) { measured = same.variant.measured; label = `${same.each.title}: ${same.variant.label}`; }
      return true;
    } catch (error) { fail(`This address cannot be read: ${error.message}`); return null; }
  };
  const sorted = (value) => (Array.isArray(value) ? value.map(sorted) : value && typeof value === "object" ? Object.fromEntries(Object.keys(value).sort().map((key) => [key, sorted(value[key])])) : value);
  addEventListener("hashchange", () => { if (read()) open(); });
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const named = experiments.find((each) => location.hash === `#try-${each.name}`);
  const asked = named ? false : read();
  const first = named ?? experiments[0]; // no paper may bring one
  if (asked) open(!still); else if (asked === false && first) play(first.name, 0, !still); else if (asked === false) {
    state = { setup: JSON.parse(form.dataset.first), count: 256, seed: 0 };
    open(!still);
  }
})();
