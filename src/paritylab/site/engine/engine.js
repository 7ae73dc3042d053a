"use strict";
// The kernel as an object: networks of one Setup, trained in step. Runs of it are numbered as in Python.
const engine = (() => {
  const STATUS = ["solved", "censored", "diverged", "training"], RECORD = 48;
  const MOST_POOLS = 1024, KEPT = 2 ** 24; // weights of finished runs that are kept, in all

  const instantiate = async (bytes) => {
    const module = await WebAssembly.compile(bytes);
    let memory = null;
    const system = { // all that the C++ library asks for
      clock_time_get: (id, precision, at) => { new DataView(memory.buffer).setBigUint64(at, BigInt(Math.round(performance.now() * 1e6)), true); return 0; },
      proc_exit: (code) => { throw new Error(`the engine stopped (${code}): not enough memory?`); },
    };
    const imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = system[name] ?? (() => 52); // 52: not there
    const { exports } = await WebAssembly.instantiate(module, imports);
    memory = exports.memory;
    exports._initialize?.();
    return exports;
  };

  // The first of these modules that the browser has, and that keeps its word: "fused" must round once.
  const load = async (modules) => {
    for (const [isa, bytes] of Object.entries(modules)) {
      if (!WebAssembly.validate(bytes)) continue;
      const exports = await instantiate(bytes);
      if (isa !== "fused" || exports.web_fuses()) return make(exports, isa);
    }
    throw new message.Refusal("This browser has no WebAssembly SIMD, which the engine needs: any of 2023 or later has it.");
  };

  const make = (exports, isa) => {
    const view = () => new DataView(exports.memory.buffer);
    const text = (at) => {
      if (at === 0) return null;
      const bytes = new Uint8Array(exports.memory.buffer);
      return String.fromCharCode(...bytes.subarray(at, bytes.indexOf(0, at)));
    };
    const check = (at) => { const why = text(at); if (why !== null) throw new message.Refusal(`the browser's engine: ${why}`); };
    const record = (at) => {
      const v = view();
      return { run: Number(v.getBigInt64(at, true)), status: STATUS[v.getInt32(at + 8, true)], t_c: Number(v.getBigInt64(at + 16, true)), steps: Number(v.getBigInt64(at + 24, true)), accuracy: v.getFloat64(at + 32, true), loss: v.getFloat64(at + 40, true) };
    };
    let pools = [], place = new Map(), kept = new Map(), starts = new Map(), size = 0, room = 4;

    const weights = () => new Float32Array(exports.memory.buffer, exports.web_weights(), size).slice();
    // Runs with these numbers, in pools of `slots`; by default as many as one trains at a time.
    const open = (setup, seed, runs, slots = 0) => {
      const bytes = message.encode(setup, seed), at = exports.web_room(bytes.length);
      new Uint8Array(exports.memory.buffer).set(bytes, at);
      check(exports.web_open());
      const widths = [setup.learner.network.width ?? setup.learner.network.degree ?? 1].flat();
      const shape = [setup.problem.n, ...widths];
      size = widths.reduce((sum, to, l) => sum + shape[l] * to + to, 0) + widths.at(-1) + 1;
      exports.web_pools(1);
      slots ||= exports.web_slots();
      const count = Math.min(Math.ceil(runs.length / slots), MOST_POOLS, Math.max(1, Math.floor(2 ** 23 / size / slots)));
      exports.web_pools(count);
      room = slots;
      pools = Array.from({ length: count }, (_, i) => ({ number: i, left: 0 }));
      place = new Map();
      kept = new Map();
      starts = new Map();
      runs.forEach((run, i) => {
        const pool = Math.floor(i / slots) % count;
        check(exports.web_add(pool, run));
        if ((starts.size + 1) * size <= KEPT) starts.set(run, weights()); // where they were drawn
        place.set(run, pool);
        pools[pool].left++;
      });
    };
    // Gives all runs of a pool so many steps and says which are done.
    const train = (pool, steps) => {
      pool.left = exports.web_train(pool.number, steps);
      const done = [], at = exports.web_records();
      while (exports.web_take(pool.number, at)) {
        const found = record(at);
        if ((kept.size + 1) * size <= KEPT) kept.set(found.run, weights());
        done.push(found);
      }
      return done;
    };
    // Runs of pools that are nearly empty go to those that are nearly full: a free slot costs what a used one does.
    const gather = () => {
      const open = pools.filter((pool) => pool.left > 0 && pool.left < room).sort((a, b) => a.left - b.left);
      for (let last = open.length - 1, first = 0; first < last;) {
        if (open[last].left === room) { last--; continue; }
        const run = exports.web_move(open[first].number, open[last].number);
        if (run === -1) return; // its optimiser remembers
        place.set(run >>> 0, open[last].number);
        open[last].left++;
        if (--open[first].left === 0) first++;
      }
    };
    const survey = (pool, examples, ofSample = 0) => {
      const at = exports.web_records();
      return Array.from({ length: exports.web_survey(pool.number, examples, ofSample, at) }, (_, i) => record(at + i * RECORD));
    };
    // The weights of a run as they are, or were at its end: W by rows, b, u, c.
    const look = (run) => {
      if (kept.has(run)) return kept.get(run);
      return exports.web_look(place.get(run), run) >= 0 ? weights() : null;
    };
    return { isa, open, train, gather, survey, look, start: (run) => starts.get(run) ?? null, get pools() { return pools; }, get left() { return pools.reduce((sum, pool) => sum + pool.left, 0); } };
  };
  return { load };
})();
