"use strict";
// Alignment against d for chosen laws, and the atlas.
(() => {
  const { dimensions, log10 } = window.paritylab.alignments;
  const boxes = [...document.querySelectorAll("#laws input")];
  const unit = document.getElementById("unit"), degree = document.getElementById("degree"), axis = document.getElementById("axis");
  const place = document.getElementById("place"), legend = document.getElementById("legend"), which = document.getElementById("which");
  const power = (value) => (value === null ? "0" : `${(10 ** (value - Math.floor(value))).toFixed(2)}·10${charts.superscript(Math.floor(value))}`);
  const styles = new Map(); // a law keeps its colour while it is drawn
  const series = () => {
    const chosen = boxes.filter((box) => box.checked);
    for (const law of [...styles.keys()]) if (!chosen.some((box) => box.value === law)) styles.delete(law);
    for (const box of chosen) if (!styles.has(box.value)) { let free = 0; while ([...styles.values()].includes(free)) free++; styles.set(box.value, free); }
    return chosen.map((box) => {
      const logs = log10[`${box.value} ${unit.value} ${degree.value}`];
      return { name: box.dataset.name, style: styles.get(box.value), x: dimensions, y: logs.map((value) => (value === null ? NaN : 10 ** value)), logs };
    });
  };
  const options = { series: [], x: { label: "number of inputs d", log: true, domain: [dimensions[0], dimensions.at(-1)] },
    y: { label: "alignment", log: true }, height: 380, label: "Exact alignment against the number of inputs", onpoint: (i) => { place.value = i; update(); } };
  const drawn = charts.chart(document.getElementById("chart"), options);
  const update = (redraw = false) => {
    const list = series(), i = Number(place.value);
    if (redraw) drawn.update({ series: list, x: { ...options.x, log: axis.value === "log" } });
    drawn.move(dimensions[i]);
    which.textContent = `d = ${dimensions[i]}`;
    place.setAttribute("aria-valuetext", `d = ${dimensions[i]}`);
    charts.legend(legend, list)(list.map((each) => power(each.logs[i])));
  };
  for (const control of [...boxes, unit, degree, axis]) control.addEventListener("change", () => update(true));
  place.addEventListener("input", () => update());
  update(true);

  const { atlas } = window.paritylab, network = document.getElementById("network");
  const points = () => [...new Set(atlas.map((row) => row.d))].map((d, i) => {
    const rows = atlas.filter((row) => row.d === d && row.network === network.value);
    return { name: `d = ${d}`, style: i, points: true, x: rows.map((row) => row.log10), y: rows.map((row) => row.accuracy), low: rows.map((row) => row.low),
      high: rows.map((row) => row.high), titles: rows.map((row) => `${row.law}, d = ${d}: accuracy ${row.accuracy.toFixed(3)}, log₁₀ alignment ${row.log10.toFixed(1)}`) };
  });
  const scatter = charts.chart(document.getElementById("scatter"), { series: points(), x: { label: "log₁₀ of the exact alignment of a neuron" },
    y: { label: "test accuracy", domain: [0.45, 1.03] }, height: 320, label: "Accuracy after training against exact alignment, for sixteen laws" });
  charts.legend(document.getElementById("scatter-legend"), points());
  network.addEventListener("change", () => {
    scatter.update({ series: points() });
    for (const table of document.querySelectorAll("[data-network]")) table.hidden = table.dataset.network !== network.value;
  });
})();
