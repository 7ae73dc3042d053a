"use strict";
// Scrub through recorded runs. Data come as scripts, since pages opened from disk may not read files.
(() => {
  const pick = document.getElementById("pick"), scrub = document.getElementById("scrub"), play = document.getElementById("play");
  const step = document.getElementById("step"), panels = document.getElementById("panels"), speed = document.getElementById("speed");
  let run = null, views = [], frame = -1, playing = false, position = 0, last = 0;

  const decode = (text) => Int8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const element = (name, className, text) => { const node = document.createElement(name); if (className) node.className = className; if (text !== undefined) node.textContent = text; return node; };
  const loaded = window.paritylab ??= {};
  const load = (name) => new Promise((resolve, reject) => {
    if (loaded[`watch-${name}`]) { resolve(loaded[`watch-${name}`]); return; }
    const script = element("script");
    script.src = `data/watch-${name}.js`;
    script.onload = () => resolve(loaded[`watch-${name}`]);
    script.onerror = () => reject(new Error(`cannot read ${script.src}`));
    document.head.append(script);
  });

  const ramp = () => {
    const style = getComputedStyle(document.documentElement), dark = style.colorScheme.includes("dark");
    const mid = dark ? [30, 32, 36] : [255, 255, 255], low = dark ? [150, 130, 235] : [84, 39, 136], high = dark ? [255, 160, 60] : [179, 88, 6];
    return Array.from({ length: 255 }, (_, i) => { const t = (i - 127) / 127, end = t < 0 ? low : high, s = Math.abs(t) ** 0.65; return mid.map((value, c) => Math.round(value + (end[c] - value) * s)); });
  };
  let colours = ramp();

  const view = (panel) => {
    const box = element("section", "watched");
    const log = document.getElementById("logsteps").checked, steps = run.steps.map((value) => (log ? Math.max(value, 0.5) : value));
    box.append(element("h2", "", panel.label));
    const now = element("p", "now");
    box.append(now);
    const codes = decode(panel.weights), { n, neurons } = panel, relevant = new Set(panel.support);
    const strength = new Float32Array(n);
    let strongest = 0;
    for (let at = 0; at < codes.length; at += n * neurons) for (let c = 0; c < n; c++) {
      let sum = 0;
      for (let j = c; j < n * neurons; j += n) sum += codes[at + j] ** 2;
      strongest = Math.max(strongest, sum);
    }

    const title = element("h3", "", "Weights per coordinate");
    const canvas = element("canvas", "heat");
    canvas.width = n;
    canvas.height = neurons;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `First-layer weights of ${neurons} neurons (rows) by ${n} coordinates (columns)`);
    const context = canvas.getContext("2d"), image = context.createImageData(n, neurons);
    const bars = element("canvas", "bars"), brush = bars.getContext("2d");
    bars.setAttribute("role", "img");
    bars.setAttribute("aria-label", "Root mean square weight of each coordinate; filled: relevant coordinates");
    const weights = element("div", "block");
    weights.append(title, bars, canvas, element("p", "facts", relevant.size === n ? "Every coordinate is relevant. Above: size of each coordinate's weights; below: one row for each neuron, purple negative, orange positive." : "Filled bars: relevant coordinates. Below: one row for each neuron, purple negative, orange positive."));
    box.append(weights);

    const axis = { label: "steps", log };
    const add = (name, series, y) => {
      const block = element("div", "block"), spot = element("div"), key = element("ul");
      block.append(element("h3", "", name), spot, key);
      box.append(block);
      const drawn = charts.chart(spot, { series, x: axis, y, height: 190, label: `${name} against steps`, onpoint: (i) => { stop(); show(i); } });
      return { drawn, set: charts.legend(key, series), series };
    };
    const line = (name, values, style) => ({ name, x: steps, y: values, style });
    const both = (name, values, trained) => [line(trained ? `${name}, new inputs` : name, values, 0), ...(trained ? [line(`${name}, training sample`, trained, 1)] : [])];
    const wait = () => [
      add("Accuracy", both("accuracy", panel.accuracy, panel.train_accuracy), { label: "", domain: [0.4, 1.02] }),
      add("Loss", both("loss", panel.loss, panel.train_loss), { label: "", domain: [0, 1.05 * Math.max(...panel.loss, ...(panel.train_loss ?? []))] }),
      add("Hidden progress", Object.entries(panel.progress).map(([name, values], i) => line(name, values, i)), { label: "", log: true }),
    ];
    let plots = [];
    const paint = (i) => {
      strength.fill(0);
      for (let j = 0, at = i * n * neurons; j < n * neurons; j++, at++) {
        const code = codes[at], [r, g, b] = colours[code + 127], spot = 4 * j;
        image.data[spot] = r; image.data[spot + 1] = g; image.data[spot + 2] = b; image.data[spot + 3] = 255;
        strength[j % n] += code * code;
      }
      context.putImageData(image, 0, 0);
      const ratio = devicePixelRatio || 1, wide = Math.round(bars.clientWidth * ratio), high = Math.round(bars.clientHeight * ratio);
      if (bars.width !== wide || bars.height !== high) { bars.width = wide; bars.height = high; }
      const style = getComputedStyle(bars), strong = style.getPropertyValue("--series-2"), weak = style.getPropertyValue("--soft");
      brush.clearRect(0, 0, wide, high);
      for (let c = 0; c < n; c++) {
        const size = Math.sqrt(strength[c] / strongest) * (high - ratio), x = (c * wide) / n, w = Math.max(1, wide / n - 1.5 * ratio);
        if (relevant.has(c)) { brush.fillStyle = strong; brush.fillRect(x, high - size, w, size); }
        else { brush.strokeStyle = weak; brush.lineWidth = ratio; brush.strokeRect(x + ratio / 2, high - size, Math.max(1, w - ratio), size); }
      }
      const told = [`accuracy ${(100 * panel.accuracy[i]).toFixed(1)} %`];
      if (panel.train_accuracy) told.push(`on the training sample ${(100 * panel.train_accuracy[i]).toFixed(1)} %`);
      now.textContent = told.join(", ");
      for (const { drawn, set, series } of plots) {
        drawn.move(steps[i]);
        set(series.map((each) => charts.shown(each.y[i])));
      }
    };
    return { box, start: () => { plots = wait(); }, paint };
  };

  const show = (i) => {
    i = Math.max(0, Math.min(run.steps.length - 1, i));
    if (i === frame) return;
    frame = i;
    scrub.value = i;
    scrub.setAttribute("aria-valuetext", `step ${run.steps[i]}`);
    step.textContent = `step ${run.steps[i].toLocaleString("en")} of ${run.steps.at(-1).toLocaleString("en")}`;
    for (const each of views) each.paint(i);
  };
  const stop = () => { playing = false; play.textContent = "Play"; play.setAttribute("aria-pressed", "false"); };
  const tick = (time) => {
    if (!playing) return;
    position += ((time - last) / 1000) * Number(speed.value);
    last = time;
    show(Math.floor(position));
    if (position >= run.steps.length - 1) stop(); else requestAnimationFrame(tick);
  };
  play.addEventListener("click", () => {
    if (playing) { stop(); return; }
    playing = true;
    play.textContent = "Pause";
    play.setAttribute("aria-pressed", "true");
    position = frame >= run.steps.length - 1 ? 0 : frame;
    last = performance.now();
    requestAnimationFrame(tick);
  });
  scrub.addEventListener("input", () => { stop(); show(Number(scrub.value)); });
  const redraw = () => { const i = frame; frame = -1; show(i); };
  document.addEventListener("themechange", () => { colours = ramp(); redraw(); });
  addEventListener("resize", () => { if (run) redraw(); });

  const open = async (name) => {
    stop();
    run = await load(name);
    document.getElementById("title").textContent = run.title;
    document.getElementById("text").textContent = run.text;
    document.getElementById("command").textContent = run.command;
    document.getElementById("copy").dataset.copy = run.command;
    scrub.max = run.steps.length - 1;
    views = run.panels.map(view);
    panels.dataset.count = views.length;
    panels.replaceChildren(...views.map((each) => each.box));
    for (const each of views) each.start();
    frame = -1;
    show(0);
  };
  const choose = (name) => { document.getElementById("logsteps").checked = name === "grokking"; open(name); };
  pick.addEventListener("change", () => choose(pick.value));
  document.getElementById("logsteps").addEventListener("change", () => { const i = frame; open(pick.value).then(() => show(i)); });
  const asked = decodeURIComponent(location.hash.slice(1));
  if ([...pick.options].some((option) => option.value === asked)) pick.value = asked;
  choose(pick.value);
})();
