"use strict";
// What the page says of Setups from standard input, one a line: the same in Python and in a shell, and why it is refused, if it is.
const fs = require("fs"), path = require("path"), vm = require("vm");
const [site] = process.argv.slice(2);

const read = (name) => fs.readFileSync(path.join(site, name), "utf8");
const { setups, message } = vm.runInThisContext(`(() => { ${read("assets/setups.js")}\n${read("engine/message.js")}; return { setups, message }; })()`);

for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
  const state = { setup: JSON.parse(line), count: 20, seed: 3 };
  let refused = null;
  try { message.encode(state.setup, state.seed); } catch (error) { if (!(error instanceof message.Refusal)) throw error; refused = error.message; }
  const kept = JSON.stringify(setups.fromHash(setups.toHash(state))) === JSON.stringify(state);
  console.log(JSON.stringify({ python: setups.python(state), shell: setups.shell(state), refused, kept }));
}
