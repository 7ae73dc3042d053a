"use strict";
// Live pictures on canvas, in the colours of the site: curves, bars, weights, a wall of tiles.
window.plots = (() => {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  let known = {};
  document.addEventListener("themechange", () => { known = {}; });
  const ink = (name) => known[name] ??= colour(name);
  const rgb = (name) => known[`rgb ${name}`] ??= (() => {
    const brush = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
    brush.fillStyle = ink(name);
    brush.fillRect(0, 0, 1, 1);
    return [...brush.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  })();
  const SHADES = 64;
  const shades = () => known.shades ??= Array.from({ length: SHADES + 1 }, (_, s) => { // from not knowing to knowing
    const a = rgb("sunk"), b = rgb("series-1");
    return `rgb(${a.map((value, i) => Math.round(value + ((b[i] - value) * s) / SHADES)).join(" ")})`;
  });
  const letters = () => known.letters ??= `12px ${colour("sans") || "sans-serif"}`;
  const isDark = () => known.dark ??= { is: getComputedStyle(document.documentElement).colorScheme.includes("dark") };

  // A canvas as sharp as the screen; its brush works in CSS pixels.
  const fitted = (canvas, height) => {
    const ratio = Math.min(3, devicePixelRatio || 1), width = canvas.clientWidth;
    const w = Math.round(width * ratio), h = Math.round(height * ratio);
    if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; canvas.style.height = `${height}px`; }
    const brush = canvas.getContext("2d");
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.clearRect(0, 0, width, height);
    return { brush, width, height };
  };
  const steps = (high, count) => {
    const raw = high / count, unit = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= raw * 0.999);
    return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, i) => i * step);
  };
  const short = (value) => (value >= 1e6 ? `${Number((value / 1e6).toPrecision(3))}M` : value >= 1e4 ? `${Number((value / 1e3).toPrecision(3))}k` : String(Number(value.toPrecision(3))));

  // Curves over [0, right] x [0, top]: series of {x, y, colour, width, dash, stairs, fill (a lower curve)}.
  const curves = (canvas, { right, top = 1, label, series, height = 230, percent = true }) => {
    const { brush, width } = fitted(canvas, height), left = 44, bottom = 38, above = 8, margin = 18;
    const x = (value) => left + (value / right) * (width - left - margin), y = (value) => height - bottom - (value / top) * (height - bottom - above);
    brush.font = letters();
    brush.lineWidth = 1;
    brush.textAlign = "right";
    for (const value of steps(top, 4)) {
      brush.strokeStyle = ink("line");
      brush.beginPath();
      brush.moveTo(left, Math.round(y(value)) + 0.5);
      brush.lineTo(width - margin, Math.round(y(value)) + 0.5);
      brush.stroke();
      brush.fillStyle = ink("soft");
      brush.fillText(percent ? `${Math.round(100 * value)} %` : short(value), left - 6, y(value) + 4);
    }
    brush.textAlign = "center";
    for (const value of steps(right, Math.max(2, Math.round(width / 110)))) brush.fillText(short(value), x(value), height - bottom + 15);
    brush.fillText(label, (left + width) / 2, height - 4);
    brush.save();
    brush.beginPath();
    brush.rect(left, 0, width - left - margin + 1, height - bottom + 1);
    brush.clip();
    for (const each of series) {
      const path = (xs, ys, backwards) => {
        const order = backwards ? [...xs.keys()].reverse() : [...xs.keys()];
        let last = null;
        for (const i of order) {
          if (!Number.isFinite(ys[i])) { last = null; continue; }
          if (last === null && !backwards) brush.moveTo(x(xs[i]), y(ys[i]));
          else { if (each.stairs && last !== null) brush.lineTo(x(xs[i]), y(last)); brush.lineTo(x(xs[i]), y(ys[i])); }
          last = ys[i];
        }
      };
      brush.beginPath();
      path(each.x, each.y, false);
      if (each.fill) {
        path(each.x, each.fill, true);
        brush.fillStyle = each.colour;
        brush.globalAlpha = 0.3;
        brush.fill();
        brush.globalAlpha = 1;
        continue;
      }
      brush.strokeStyle = each.colour;
      brush.lineWidth = each.width ?? 1.6;
      brush.lineJoin = "round";
      brush.setLineDash(each.dash ?? []);
      brush.stroke();
      brush.setLineDash([]);
    }
    brush.restore();
  };

  // How often each accuracy from 0 to 1 occurs.
  const histogram = (canvas, values, { height = 150, bins = 25 } = {}) => {
    const counts = new Array(bins).fill(0);
    for (const value of values) counts[Math.min(bins - 1, Math.max(0, Math.floor(value * bins)))]++;
    const { brush, width } = fitted(canvas, height), left = 44, bottom = 38, most = Math.max(...counts, 1), bar = (width - left - 18) / bins;
    brush.font = letters();
    counts.forEach((count, i) => {
      brush.fillStyle = i === bins - 1 ? ink("lit") : ink("series-1");
      const size = (count / most) * (height - bottom - 8);
      brush.fillRect(left + i * bar + 0.5, height - bottom - size, Math.max(1, bar - 1), size);
    });
    brush.fillStyle = ink("soft");
    brush.textAlign = "right";
    brush.fillText(short(most), left - 6, 16);
    brush.textAlign = "center";
    for (const value of [0, 0.25, 0.5, 0.75, 1]) brush.fillText(`${100 * value} %`, Math.min(left + value * bins * bar, width - 22), height - bottom + 15);
    brush.fillText("accuracy", (left + width) / 2, height - 4);
  };

  // One tile for each network: darker the more it knows, lit when it is solved, crossed when it diverged.
  const wall = (canvas, networks, chosen, height = 230) => {
    const { brush, width } = fitted(canvas, height), { count, records, accuracy } = networks;
    const shade = shades();
    let columns = 1;
    while (Math.ceil(count / columns) * (width / columns) > height) columns++;
    const size = Math.min(width / columns, 34), gap = size > 7 ? 1.5 : size > 3 ? 0.7 : 0;
    for (let i = 0; i < count; i++) {
      const x = (i % columns) * size, y = Math.floor(i / columns) * size, status = records[i]?.status;
      brush.fillStyle = status === "solved" ? ink("lit") : status === "diverged" ? ink("soft") : shade[Math.round(SHADES * Math.min(1, Math.max(0.06, (accuracy[i] - 0.5) * 1.7)))];
      brush.fillRect(x, y, size - gap, size - gap);
      if (status === "diverged" && size > 5) { brush.strokeStyle = ink("paper"); brush.beginPath(); brush.moveTo(x, y); brush.lineTo(x + size - gap, y + size - gap); brush.stroke(); }
    }
    if (chosen !== null && count > 1) {
      brush.strokeStyle = ink("ink");
      brush.lineWidth = 2;
      brush.strokeRect((chosen % columns) * size - 0.5, Math.floor(chosen / columns) * size - 0.5, size - gap + 1, size - gap + 1);
    }
    return { columns, size, at: (px, py) => { const i = Math.floor(py / size) * columns + Math.floor(px / size); return px < columns * size && i < count ? i : null; } };
  };

  // First-layer weights, a row for each unit and a column for each input: purple below 0, orange above.
  const weights = (canvas, values, n, units, shown = 24) => {
    const rows = Math.min(units, shown), dark = isDark().is;
    const mid = dark ? [30, 32, 36] : [255, 255, 255], low = dark ? [150, 130, 235] : [84, 39, 136], high = dark ? [255, 160, 60] : [179, 88, 6];
    let scale = 1e-9;
    for (let i = 0; i < n * units; i++) scale = Math.max(scale, Math.abs(values[i]));
    if (canvas.width !== n || canvas.height !== rows) { canvas.width = n; canvas.height = rows; }
    const brush = canvas.getContext("2d"), image = brush.createImageData(n, rows);
    for (let j = 0; j < n; j++) for (let u = 0; u < rows; u++) {
      const t = values[j * units + u] / scale, end = t < 0 ? low : high, s = Math.abs(t) ** 0.65, at = 4 * (u * n + j);
      for (let c = 0; c < 3; c++) image.data[at + c] = mid[c] + (end[c] - mid[c]) * s;
      image.data[at + 3] = 255;
    }
    brush.putImageData(image, 0, 0);
  };
  return { curves, histogram, wall, weights, ink };
})();
