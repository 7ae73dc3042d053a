"use strict";
// Running and queued sweeps, as the server tells them every two seconds.
(() => {
  const state = document.getElementById("state"), list = document.getElementById("live");
  const cell = (row, text, name = "td") => { const node = document.createElement(name); node.textContent = text; row.append(node); return node; };
  const line = (text) => { const node = document.createElement("p"); node.textContent = text; return node; };
  const number = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en"));
  const shape = (job) => `n = ${job.n}, k = ${job.k}, ${job.network}, batch ${job.batch}, rate ${job.lr}`;
  const table = (sweep) => {
    const box = document.createElement("section"), title = document.createElement("h2"), scroll = document.createElement("div"), made = document.createElement("table");
    const done = sweep.jobs.reduce((sum, job) => sum + job.done, 0), wanted = sweep.jobs.reduce((sum, job) => sum + job.wanted, 0);
    title.textContent = `Sweep of ${sweep.jobs.length} setup${sweep.jobs.length > 1 ? "s" : ""}: ${number(done)} of ${number(wanted)} runs`;
    const head = made.createTHead().insertRow(), body = made.createTBody();
    for (const name of ["state", "setup", "progress", "runs ended", "solved of those", "10 %", "median"]) cell(head, name, "th").scope = "col";
    for (const job of sweep.jobs) {
      const row = body.insertRow();
      cell(row, job.state);
      cell(row, shape(job), "th").scope = "row";
      const bar = document.createElement("progress");
      bar.max = job.wanted;
      bar.value = job.done;
      bar.setAttribute("aria-label", `progress of ${shape(job)}`);
      cell(row, "").append(bar);
      cell(row, `${number(job.done)} of ${number(job.wanted)}`);
      cell(row, job.done ? `${(100 * job.solved_fraction).toFixed(1)} %` : "–");
      cell(row, number(job.p10));
      cell(row, number(job.median));
    }
    scroll.className = "scroll";
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", title.textContent);
    scroll.append(made);
    box.append(title);
    if (sweep.quiet_since !== null) box.append(line(`Not heard of since ${new Date(1000 * sweep.quiet_since).toLocaleString("en")}.`));
    box.append(scroll);
    return box;
  };
  document.addEventListener("live", ({ detail }) => {
    const told = detail === null ? "The server does not answer." : detail.sweeps.length ? `${detail.sweeps.length} sweep${detail.sweeps.length > 1 ? "s" : ""} going on.` : "Nothing is training.";
    if (state.textContent !== told) state.textContent = told;
    if (detail) list.replaceChildren(...detail.sweeps.map(table), ...detail.notes.map(line));
  });
})();
