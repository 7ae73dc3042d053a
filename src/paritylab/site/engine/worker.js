"use strict";
// A worker of the page: trains its share of the networks, so many steps at a time, and tells how they do.
let kernel = null;

const unpacked = async (packed) => new Uint8Array(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());

const tell = (answer) => postMessage(answer, Object.values(answer).filter((each) => ArrayBuffer.isView(each)).map((each) => each.buffer));

const ACTIONS = {
  load: async ({ isa, packed }) => { kernel = await engine.load({ [isa]: await unpacked(packed) }); return { isa: kernel.isa }; },
  open: ({ setup, seed, runs }) => { kernel.open(setup, seed, runs); return { left: kernel.left }; },
  train: ({ steps, examples, finite, look }) => {
    const done = [], run = [], told = [];
    for (const pool of kernel.pools) {
      if (pool.left === 0) continue;
      if (steps > 0) done.push(...kernel.train(pool, steps));
      const sampled = finite ? kernel.survey(pool, examples, 1) : [];
      kernel.survey(pool, examples).forEach((each, i) => { run.push(each.run); told.push(each.accuracy, each.loss, sampled[i]?.accuracy ?? NaN); });
    }
    kernel.gather();
    const found = look === null ? null : kernel.look(look), start = look === null ? null : kernel.start(look);
    return { left: kernel.left, done, run: Uint32Array.from(run), told: Float32Array.from(told), ...(found && { weights: found.slice() }), ...(start && { start: start.slice() }) };
  },
};
onmessage = async ({ data }) => {
  try { tell({ to: data.do, ...(await ACTIONS[data.do](data)) }); } catch (error) { tell({ to: data.do, refused: error.message }); }
};
