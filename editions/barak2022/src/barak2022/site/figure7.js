"use strict";
// The table of Figure 7: measured beside published, sortable; every cell can be reached by keyboard.
(() => {
  const { settings, columns, cells } = window.paritylab.figure7;
  const table = document.getElementById("table"), told = document.getElementById("told");
  const rule = document.getElementById("rule"), degree = document.getElementById("degree");
  const cell = (setting, column) => cells[`${setting} ${column.k} ${column.batch}`];
  const number = (value) => (value === null ? "–" : value >= 1e5 ? "≥10⁵" : Math.round(value).toLocaleString("en"));
  const measured = (each) => each && each[rule.value];
  const ratio = (each) => (measured(each)?.p10 && each.published ? Math.log10(measured(each).p10 / each.published) : null);
  let sorted = { column: -1, down: false }, focus = [0, 0];
  if (innerWidth < 1100) degree.value = "3";

  const seen = () => columns.filter((column) => degree.value === "all" || String(column.k) === degree.value);
  const order = () => {
    const list = [...settings];
    if (sorted.column >= 0) {
      const column = columns[sorted.column], key = (name) => measured(cell(name, column))?.p10 ?? Infinity;
      list.sort((a, b) => key(a) - key(b) || settings.indexOf(a) - settings.indexOf(b));
    }
    return sorted.down ? list.reverse() : list;
  };
  const describe = (setting, column) => {
    const each = cell(setting, column), found = measured(each);
    const published = each?.published ? `${number(each.published)}${each.certain ? "" : " (uncertain reading)"}` : "blank";
    const lines = [`Setting (${setting}), k = ${column.k}, B = ${column.batch}: published ${published}.`];
    if (!found) return [...lines, "Not measured."].join(" ");
    const ends = `[${number(found.low)}, ${found.high === null ? "not reached" : number(found.high)}]`;
    lines.push(found.p10 === null ? "Measured: 10 % of the runs not solved." : `Measured ${number(found.p10)} ${ends} steps` + (each.published ? `, ${charts.shown(found.p10 / each.published)} times the published.` : "."));
    lines.push(`Learning rate ${found.lr}; ${charts.shown(100 * found.solved)} % of 25 runs solved within ${found.horizon.toLocaleString("en")} steps` + (each.share === null ? "." : ` (published: ${each.share} %).`));
    return lines.join(" ");
  };
  const ground = (each) => {
    const value = ratio(each);
    if (value === null) return "transparent";
    const part = Math.min(1, Math.abs(value) / 0.5) * 62;
    return `color-mix(in oklab, var(${value > 0 ? "--slower" : "--faster"}) ${part.toFixed(0)}%, var(--raised))`;
  };
  const tell = (td) => { told.textContent = describe(td.dataset.setting, columns[td.dataset.column]); };
  const draw = () => {
    const list = seen(), head = document.createElement("thead"), body = document.createElement("tbody");
    const groups = head.insertRow(), row = head.insertRow();
    const corner = document.createElement("td");
    groups.append(corner);
    for (const k of [...new Set(list.map((column) => column.k))]) {
      const th = document.createElement("th");
      th.colSpan = list.filter((column) => column.k === k).length;
      th.scope = "colgroup";
      th.textContent = `k = ${k}`;
      groups.append(th);
    }
    [null, ...list].forEach((column) => {
      const th = document.createElement("th"), button = document.createElement("button"), index = column ? columns.indexOf(column) : -1;
      th.scope = "col";
      button.type = "button";
      button.textContent = column ? `B ${column.batch}` : "setting";
      button.setAttribute("aria-label", column ? `Sort by k = ${column.k}, B = ${column.batch}` : "Sort by setting");
      if (sorted.column === index) th.setAttribute("aria-sort", sorted.down ? "descending" : "ascending");
      button.addEventListener("click", () => {
        sorted = { column: index, down: sorted.column === index && !sorted.down };
        draw();
        table.querySelector("th[aria-sort] button").focus();
      });
      th.append(button);
      row.append(th);
    });
    order().forEach((setting, i) => {
      const tr = body.insertRow(), th = document.createElement("th");
      th.scope = "row";
      th.textContent = `(${setting})`;
      tr.append(th);
      list.forEach((column, j) => {
        const td = tr.insertCell(), each = cell(setting, column), found = measured(each);
        td.dataset.setting = setting;
        td.dataset.column = columns.indexOf(column);
        td.tabIndex = i === focus[0] && j === focus[1] ? 0 : -1;
        td.style.background = ground(each);
        const value = document.createElement("b"), print = document.createElement("span");
        value.textContent = found ? number(found.p10) : "·";
        print.textContent = each?.published ? number(each.published) : "blank";
        td.append(value, print);
        td.setAttribute("aria-label", describe(setting, column));
      });
    });
    table.replaceChildren(head, body);
    table.dataset.columns = list.length;
  };
  table.addEventListener("pointerover", (event) => { const td = event.target.closest("td[data-setting]"); if (td) tell(td); });
  table.addEventListener("focusin", (event) => { const td = event.target.closest("td[data-setting]"); if (td) tell(td); });
  table.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -99], End: [0, 99] }[event.key];
    const td = event.target.closest("td[data-setting]");
    if (!move || !td) return;
    event.preventDefault();
    const rows = [...table.tBodies[0].rows], i = rows.indexOf(td.parentElement), j = td.cellIndex - 1;
    const clamp = (value, most) => Math.max(0, Math.min(most, value));
    focus = [clamp(i + move[0], rows.length - 1), clamp(j + move[1], rows[0].cells.length - 2)];
    td.tabIndex = -1;
    const next = rows[focus[0]].cells[focus[1] + 1];
    next.tabIndex = 0;
    next.focus();
  });
  for (const choice of [rule, degree]) choice.addEventListener("change", () => { focus = [0, 0]; if (choice === degree) sorted = { column: -1, down: false }; draw(); });
  draw();
})();
