"use strict";
// Small SVG charts: lines or points, linear or logarithmic axes, a movable guide.
window.charts = (() => {
  const make = (name, attributes = {}, ...children) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const colour = (i) => `var(--series-${(i % 7) + 1})`;
  const DASHES = ["", "6 3", "8 3 2 3", "2 3", "9 2 2 2 2 2"]; // as on paper: curves differ in grey, too
  const dash = (style) => DASHES[style % DASHES.length];
  const MARKS = [
    (x, y) => `M${x - 4},${y}a4,4 0 1,0 8,0a4,4 0 1,0 -8,0`,
    (x, y) => `M${x - 3.5},${y - 3.5}h7v7h-7z`,
    (x, y) => `M${x},${y - 4.5}l4.5,8h-9z`,
    (x, y) => `M${x},${y + 4.5}l4.5,-8h-9z`,
    (x, y) => `M${x},${y - 5}l5,5l-5,5l-5,-5z`,
  ];
  const superscript = (power) => [...String(power)].map((sign) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(sign)]).join("");
  const shown = (value) => {
    if (!Number.isFinite(value)) return "not reached";
    const size = Math.abs(value);
    if (size !== 0 && (size >= 1e5 || size < 1e-3)) { const [digits, power] = value.toExponential(2).split("e"); return `${digits}·10${superscript(Number(power))}`; }
    return String(Number(value.toPrecision(4)));
  };
  const tick = (value, log) => {
    const power = Math.log10(Math.abs(value));
    if (log && Math.abs(power - Math.round(power)) < 1e-9 && Math.abs(power) > 2) return `10${superscript(Math.round(power))}`;
    if (Math.abs(value) >= 1e4) return `${Number((value / 1e3).toPrecision(3))}k`;
    return String(Number(value.toPrecision(3)));
  };
  const linearTicks = (low, high, count) => {
    const raw = (high - low) / count, unit = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 5, 10].map((each) => each * unit).find((each) => each >= raw * 0.999);
    const ticks = [];
    for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + 1e-9 * step; value += step) ticks.push(Math.abs(value) < step / 1e6 ? 0 : value);
    return ticks;
  };
  const logTicks = (low, high, count) => {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first < 2) {
      const ticks = [];
      for (let power = first - 1; power <= last + 1; power++) for (const each of [1, 2, 5]) ticks.push(each * 10 ** power);
      return ticks.filter((value) => value >= low * 0.999 && value <= high * 1.001);
    }
    const step = Math.max(1, Math.ceil((last - first) / count)), ticks = [];
    for (let power = first; power <= last; power += step) ticks.push(10 ** power);
    return ticks;
  };
  const extent = (values, log) => {
    const good = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
    if (!good.length) return log ? [0.1, 1] : [0, 1];
    let low = Math.min(...good), high = Math.max(...good);
    if (low === high) { low = log ? low / 2 : low - 0.5; high = log ? high * 2 : high + 0.5; }
    return [low, high];
  };

  // element: where to draw. options: series [{name, x, y, low, high, points}], x and y {label, log, domain}, height,
  // label (for those who cannot see it), onpoint(index) when the guide is moved by pointer or arrow keys.
  const chart = (element, options) => {
    const svg = make("svg", { role: "img", "aria-label": options.label ?? "" });
    element.replaceChildren(svg);
    element.classList.add("chart");
    let scale = null, guide = null, width = 0;
    const draw = () => {
      width = Math.max(220, element.clientWidth);
      const height = options.height ?? 260, series = options.series.filter((each) => each.x.length);
      const left = 52, right = 20, top = 10, bottom = 40;
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("width", width);
      svg.setAttribute("height", height);
      const axis = (name, start, end, counted) => {
        const { log = false, domain } = options[name];
        const [low, high] = domain ?? extent(series.flatMap((each) => [...each[name], ...(name === "y" ? [...(each.low ?? []), ...(each.high ?? [])] : [])]), log);
        const map = log ? Math.log10 : (value) => value;
        const a = map(low), b = map(high);
        const to = (value) => start + ((map(value) - a) / (b - a)) * (end - start);
        return { to, ticks: (log ? logTicks : linearTicks)(low, high, counted), log, inside: (v) => Number.isFinite(v) && (!log || v > 0) };
      };
      const x = axis("x", left, width - right, Math.max(3, Math.round(width / 90)));
      const y = axis("y", height - bottom, top, Math.max(3, Math.round(height / 45)));
      scale = { x, y };
      const parts = [];
      for (const value of y.ticks) {
        parts.push(make("line", { class: "grid", x1: left, x2: width - right, y1: y.to(value), y2: y.to(value) }));
        const text = make("text", { class: "tick", x: left - 6, y: y.to(value) + 4, "text-anchor": "end" });
        text.textContent = tick(value, y.log);
        parts.push(text);
      }
      for (const value of x.ticks) {
        parts.push(make("line", { class: "axis", x1: x.to(value), x2: x.to(value), y1: height - bottom, y2: height - bottom + 4 }));
        const text = make("text", { class: "tick", x: x.to(value), y: height - bottom + 17, "text-anchor": "middle" });
        text.textContent = tick(value, x.log);
        parts.push(text);
      }
      parts.push(make("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }));
      const name = make("text", { class: "label", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" });
      name.textContent = options.x.label;
      const side = make("text", { class: "label", x: 0, y: 0, "text-anchor": "middle", transform: `translate(12 ${(top + height - bottom) / 2}) rotate(-90)` });
      side.textContent = options.y.label;
      parts.push(name, side);
      series.forEach((each, i) => {
        const style = each.style ?? i, stroke = each.colour ?? colour(style);
        if (each.points) {
          each.x.forEach((value, j) => {
            if (!x.inside(value) || !y.inside(each.y[j])) return;
            if (each.low) parts.push(make("line", { x1: x.to(value), x2: x.to(value), y1: y.to(each.low[j]), y2: y.to(each.high[j]), stroke, "stroke-width": 1 }));
            const mark = make("path", { d: MARKS[style % MARKS.length](x.to(value), y.to(each.y[j])), fill: "var(--raised)", stroke, "stroke-width": 1.5 });
            if (each.titles) mark.append(make("title", {}, each.titles[j]));
            parts.push(mark);
          });
          return;
        }
        let path = "", pen = false;
        each.x.forEach((value, j) => {
          const good = x.inside(value) && y.inside(each.y[j]);
          if (good) path += `${pen ? "L" : "M"}${x.to(value).toFixed(1)},${y.to(each.y[j]).toFixed(1)}`;
          pen = good;
        });
        parts.push(make("path", { d: path, fill: "none", stroke, "stroke-width": 1.8, "stroke-linejoin": "round", "stroke-dasharray": dash(style) }));
      });
      guide = make("line", { class: "guide", x1: 0, x2: 0, y1: top, y2: height - bottom, visibility: "hidden" });
      svg.replaceChildren(...parts, guide);
      if (at !== null) move(at);
    };
    let at = null;
    const move = (value) => {
      at = value;
      if (!scale || value === null || !scale.x.inside(value)) { guide?.setAttribute("visibility", "hidden"); return; }
      guide.setAttribute("visibility", "visible");
      guide.setAttribute("transform", `translate(${scale.x.to(value).toFixed(1)} 0)`);
    };
    const nearest = (event) => {
      const box = svg.getBoundingClientRect(), place = ((event.clientX - box.left) / box.width) * width;
      const xs = options.series[0]?.x ?? [];
      let best = 0;
      xs.forEach((value, i) => { if (Math.abs(scale.x.to(value) - place) < Math.abs(scale.x.to(xs[best]) - place)) best = i; });
      return best;
    };
    if (options.onpoint) {
      svg.addEventListener("pointermove", (event) => options.onpoint(nearest(event)));
      svg.addEventListener("pointerdown", (event) => options.onpoint(nearest(event)));
    }
    new ResizeObserver(() => { if (element.clientWidth && Math.abs(element.clientWidth - width) > 1) draw(); }).observe(element);
    draw();
    return { move, update: (changes) => { Object.assign(options, changes); draw(); } };
  };

  // A list of the series; the answer sets the value beside each.
  const legend = (element, series) => {
    element.classList.add("legend");
    const values = series.map(() => document.createElement("b"));
    element.replaceChildren(...series.map((each, i) => {
      const item = document.createElement("li"), style = each.style ?? i, stroke = each.colour ?? colour(style);
      const key = make("svg", { width: 26, height: 12, "aria-hidden": "true" });
      key.append(each.points
        ? make("path", { d: MARKS[style % MARKS.length](13, 6), fill: "none", stroke, "stroke-width": 1.5 })
        : make("line", { x1: 0, x2: 26, y1: 6, y2: 6, stroke, "stroke-width": 2.2, "stroke-dasharray": dash(style) }));
      item.append(key, ` ${each.name} `, values[i]);
      return item;
    }));
    return (texts) => texts.forEach((text, i) => { values[i].textContent = text; });
  };
  return { chart, legend, shown, superscript };
})();
