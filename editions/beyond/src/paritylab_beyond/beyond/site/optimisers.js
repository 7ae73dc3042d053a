"use strict";
// Optimisers, all cells together or one of them, on one of three axes; column heads sort.
(() => {
  const { rows, titles, standings } = window.paritylab.optimisers;
  const table = document.getElementById("optimisers"), cell = document.getElementById("cell"), axis = document.getElementById("axis");
  const number = (value) => (value === null ? "not reached" : value < 1e6 ? Math.round(value).toLocaleString("en") : value.toExponential(2));
  const inf = (value) => value ?? Infinity;
  const median = (row) => (row[axis.value] === null ? `above ${number(row.limit)} steps` : `${number(row[axis.value])} [${row[`${axis.value}_interval`].map(number).join(", ")}]`);
  const together = [
    ["optimiser", (row) => titles[row.optimiser] ?? row.optimiser],
    ["median reached", (row) => `${row.reached} of ${row.cells}`, (row) => -row.reached],
    ["times the best, where reached", (row) => (row.ratio === null ? "" : row.ratio.toFixed(2)), (row) => inf(row.ratio)],
    ["cells won", (row) => String(row.best), (row) => -row.best],
    ["won or not told apart", (row) => String(row.level), (row) => -row.level],
  ];
  const single = [
    ["optimiser", (row) => titles[row.optimiser] ?? row.optimiser],
    ["median [95 %]", (row) => median(row) + (row.level ? " =" : ""), (row) => inf(row[axis.value])],
    ["solved", (row) => `${(100 * row.solved_fraction).toFixed(1)} %`, (row) => -row.solved_fraction],
    ["rate", (row) => row.rate.toPrecision(3) + (row.edge ? " *" : ""), (row) => row.rate],
    ["engine", (row) => row.engine],
  ];
  let sorted = { column: 1, down: false };
  const shown = () => {
    if (cell.value === "all") return standings[axis.value];
    const mine = rows.filter((row) => `${row.network} ${row.n} ${row.k}` === cell.value);
    const best = mine.reduce((a, b) => (inf(b[axis.value]) < inf(a[axis.value]) ? b : a));
    const top = inf(best[`${axis.value}_interval`][1]);
    return mine.map((row) => ({ ...row, level: row !== best && row[axis.value] !== null && inf(row[`${axis.value}_interval`][0]) <= top }));
  };
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a === b ? 0 : a - b);
  const draw = () => {
    const columns = cell.value === "all" ? together : single, [, text, value = text] = columns[sorted.column];
    const head = document.createElement("thead"), body = document.createElement("tbody"), top = head.insertRow();
    columns.forEach(([name], index) => {
      const th = document.createElement("th"), button = document.createElement("button");
      th.scope = "col";
      button.type = "button";
      button.textContent = name;
      if (sorted.column === index) th.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      button.addEventListener("click", () => {
        sorted = { column: index, down: sorted.column === index && !sorted.down };
        draw();
        table.querySelector("th[aria-sort] button").focus();
      });
      th.append(button);
      top.append(th);
    });
    const list = [...shown()].sort((a, b) => compare(value(a), value(b)));
    for (const row of sorted.down ? list.reverse() : list) {
      const tr = body.insertRow();
      columns.forEach(([, words], index) => {
        const td = document.createElement(index ? "td" : "th");
        if (!index) td.scope = "row";
        td.textContent = words(row);
        tr.append(td);
      });
    }
    table.replaceChildren(table.caption, head, body);
  };
  for (const choice of [cell, axis]) choice.addEventListener("change", () => { if (choice === cell) sorted = { column: 1, down: false }; draw(); });
  draw();
})();
