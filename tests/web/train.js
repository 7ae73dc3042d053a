"use strict";
// Trains Setups from standard input with the browser's engine: one JSON document a line, {setup, seed, runs}, and one answer a line.
const fs = require("fs"), path = require("path"), vm = require("vm"), zlib = require("zlib");
const [folder, isa, modules] = process.argv.slice(2); // scripts, a module, and where the modules are

const sources = ["message.js", "engine.js"].map((name) => fs.readFileSync(path.join(folder, name), "utf8"));
const { engine, message } = vm.runInThisContext(`(() => { ${sources.join("\n")}; return { engine, message }; })()`);

(async () => {
  const kernel = await engine.load({ [isa]: zlib.gunzipSync(fs.readFileSync(path.join(modules, `${isa}.wasm.gz`))) });
  for (const line of fs.readFileSync(0, "utf8").split("\n").filter(Boolean)) {
    const { setup, seed, runs, slots, steps = 7 } = JSON.parse(line), records = [];
    let answer;
    try {
      const start = process.cpuUsage();
      kernel.open(setup, seed, runs, slots);
      const pools = kernel.pools.length;
      while (kernel.left > 0) {
        for (const pool of kernel.pools) if (pool.left > 0) records.push(...kernel.train(pool, steps));
        kernel.gather();
      }
      const used = process.cpuUsage(start); // of the processor, whatever else it does
      answer = { records, pools, seconds: (used.user + used.system) / 1e6 };
    } catch (error) {
      if (!(error instanceof message.Refusal)) throw error;
      answer = { refused: error.message };
    }
    console.log(JSON.stringify(answer));
  }
})();
