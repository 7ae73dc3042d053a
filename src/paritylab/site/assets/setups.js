"use strict";
// Setups as the page has them: JSON as Setup.to_json writes it, what the controls change in it, and the same in Python and a shell.
const setups = (() => {
  const first = (k) => Array.from({ length: k }, (_, j) => j);
  const blank = () => ({
    conventions: 1, type: "setup",
    problem: { type: "parity", n: 30, k: 3, support: [0, 1, 2], noise: 0, sample: null, replacement: false, inputs: null },
    learner: { type: "learner", network: { type: "mlp", width: 10, activation: "relu", output_bias: true }, init: "torch", loss: "hinge", optimiser: { type: "sgd", lr: 1, schedule: "constant", rates: null, noise: 0, weight_decay: 0, decay_form: "coupled" }, batch: 32 },
    protocol: { type: "protocol", max_steps: 5000, eval_every: 10, eval_size: 128, threshold: 1, consecutive: 1, fresh: false },
  });

  // --- problems ---
  // The table of a function of k bits: a hexadecimal digit for four values, a set bit for -1; bit i of an index for x_i = -1.
  const table = (k, minus) => Array.from({ length: Math.max(1, 2 ** k / 4) }, (_, d) => [0, 1, 2, 3].reduce((digit, b) => digit | (4 * d + b < 2 ** k && minus(4 * d + b) ? 1 << b : 0), 0).toString(16)).join("");
  const ones = (index) => { let count = 0; for (; index; index &= index - 1) count++; return count; };
  const TARGETS = {
    parity: (k) => ({ type: "product", support: first(k) }),
    majority: (k) => ({ type: "table", places: first(k), table: table(k, (index) => 2 * ones(index) > k) }),
    staircase: (k) => ({ type: "sum", terms: first(k).map((j) => [1, first(j + 1)]), sign: false }),
    leaky: (k) => ({ type: "product", support: first(k) }),
  };
  const targetOf = (p) => {
    if (p.type === "leaky-parity") return "leaky";
    if (p.type !== "problem") return p.type === "parity" ? "parity" : "other";
    const k = kOf(p), found = ["parity", "majority", "staircase"].find((name) => (name !== "majority" || k <= 12) && JSON.stringify(TARGETS[name](k)) === JSON.stringify({ ...TARGETS[name](k), ...p.target }));
    return found ?? "other";
  };
  const kOf = (p) => (p.support ?? p.target?.support ?? p.target?.places ?? p.target?.terms?.at(-1)?.[1] ?? []).length;
  const lawOf = (p) => {
    const law = p.inputs;
    if (!law || law.type === "uniform") return "uniform";
    if (law.type === "biased" && !Array.isArray(law.p)) return `biased:${law.p}`;
    if (law.type === "mixture" && law.first.type === "biased" && law.second.type === "uniform") return `mixture:${law.rho},biased:${law.first.p}`;
    return "other";
  };
  const law = (spec) => {
    const [name, tail] = [spec.split(":")[0], spec.slice(spec.indexOf(":") + 1)];
    if (name === "biased") return { type: "biased", p: Number(tail) };
    if (name === "mixture") return { type: "mixture", rho: Number(tail.split(",")[0]), first: law(tail.slice(tail.indexOf(",") + 1)), second: { type: "uniform" } };
    return { type: "uniform" };
  };
  // A problem of this target and law, with noise and sample as they were.
  const posed = (setup, target, k, inputs) => {
    const { n, noise, sample, replacement } = setup.problem, size = Math.min(k, n), kept = { n, noise, sample, replacement };
    if (target === "leaky") return { type: "leaky-parity", ...kept, k: size, support: first(size), inputs: null, leak: setup.problem.leak ?? 0.5 };
    if (target === "parity" && inputs === "uniform") return { type: "parity", ...kept, k: size, support: first(size), inputs: null };
    return { type: "problem", ...kept, target: TARGETS[target](size), inputs: law(inputs), scale: 1, stages: [], evaluation: null, short_last: false };
  };
  const pose = (setup, { target, k, inputs } = {}) => {
    const now = { target: target ?? targetOf(setup.problem), k: k ?? kOf(setup.problem), inputs: inputs ?? lawOf(setup.problem) };
    if (now.target === "other" || now.inputs === "other") return;
    if (now.target === "majority") now.k = Math.min(now.k | 1, 11);
    setup.problem = posed(setup, now.target, now.k, now.inputs);
  };

  // --- what the controls read and write, by name ---
  const OPTIMISERS = {
    sgd: { momentum: undefined, weight_decay: 0, decay_form: "coupled" }, momentum: { momentum: 0.9, weight_decay: 0, decay_form: "coupled" },
    adam: { b1: 0.9, b2: 0.999, eps: 1e-8 }, rmsprop: { alpha: 0.99, eps: 1e-8, momentum: 0 }, "sign-sgd": {},
  };
  const controls = {
    n: [(s) => s.problem.n, (s, v) => { s.problem.n = v; pose(s); }],
    k: [(s) => kOf(s.problem), (s, v) => pose(s, { k: v })],
    target: [(s) => targetOf(s.problem), (s, v) => pose(s, { target: v })],
    inputs: [(s) => lawOf(s.problem), (s, v) => pose(s, { inputs: v })],
    noise: [(s) => s.problem.noise, (s, v) => { s.problem.noise = v; }],
    sample: [(s) => s.problem.sample ?? 0, (s, v) => { s.problem.sample = v || null; if (!v) s.problem.replacement = false; }],
    network: [(s) => s.learner.network.type, (s, v) => {
      const { activation = "relu" } = s.learner.network;
      s.learner.network = v === "mlp" ? { type: v, width: 10, activation, output_bias: true } : v === "neuron" ? { type: v, activation } : { type: v, degree: Math.max(1, kOf(s.problem)) };
    }],
    width: [(s) => [s.learner.network.width ?? s.learner.network.degree ?? 1].flat().join(" "), (s, v) => {
      const widths = String(v).trim().split(/[\s,]+/).map(Number);
      if (s.learner.network.type === "mlp") s.learner.network.width = widths.length === 1 ? widths[0] : widths;
      else if (s.learner.network.type === "polynet") [s.learner.network.degree] = widths;
    }],
    activation: [(s) => s.learner.network.activation ?? "", (s, v) => { if (s.learner.network.type !== "polynet") s.learner.network.activation = v; }],
    init: [(s) => s.learner.init, (s, v) => { s.learner.init = v; }],
    loss: [(s) => s.learner.loss, (s, v) => { s.learner.loss = v; }],
    optimiser: [(s) => (s.learner.optimiser.type === "sgd" && s.learner.optimiser.momentum ? "momentum" : s.learner.optimiser.type), (s, v) => {
      const { lr, noise } = s.learner.optimiser;
      s.learner.optimiser = JSON.parse(JSON.stringify({ type: v === "momentum" ? "sgd" : v, lr, schedule: "constant", rates: null, noise, ...OPTIMISERS[v] }));
    }],
    lr: [(s) => s.learner.optimiser.lr, (s, v) => { s.learner.optimiser.lr = v; }],
    decay: [(s) => s.learner.optimiser.weight_decay ?? 0, (s, v) => { s.learner.optimiser.weight_decay = v; if (!v && s.learner.optimiser.type !== "sgd") delete s.learner.optimiser.weight_decay; }],
    batch: [(s) => s.learner.batch, (s, v) => { s.learner.batch = v; }],
    steps: [(s) => s.protocol.max_steps, (s, v) => { s.protocol.max_steps = v; }],
    judged: [(s) => s.protocol.eval_size, (s, v) => { s.protocol.eval_size = v; }],
  };

  // --- the address ---
  const toHash = ({ setup, count, seed }) => `#runs=${count}&seed=${seed}&setup=${encodeURIComponent(JSON.stringify(setup))}`;
  const fromHash = (hash) => {
    const told = new URLSearchParams(hash.replace(/^#/, ""));
    if (!told.has("setup")) return null;
    const setup = JSON.parse(told.get("setup")), count = Number(told.get("runs") ?? 256), seed = Number(told.get("seed") ?? 0);
    if (setup?.type !== "setup" || setup.conventions !== 1) throw new Error("the address holds no Setup of these conventions");
    if (!(count >= 1 && count <= 2000 && Number.isInteger(count) && seed >= 0 && seed < 2 ** 32 && Number.isInteger(seed))) throw new Error("the address must have 1 to 2,000 runs and a seed from 0 to 2^32 - 1");
    return { setup, count, seed };
  };

  // --- the same in Python: constructors with what is not their default ---
  const MADE = {
    parity: ["pl.Parity", { noise: 0, sample: null, replacement: false, inputs: null, short_last: false }],
    "leaky-parity": ["pl.LeakyParity", { noise: 0, sample: null, replacement: false, inputs: null, short_last: false, leak: 0.5 }],
    polynomial: ["pl.Polynomial", { noise: 0, sample: null, replacement: false, inputs: null, short_last: false }],
    problem: ["pl.Problem", { inputs: { type: "uniform" }, noise: 0, sample: null, replacement: false, scale: 1, stages: [], evaluation: null, short_last: false }],
    stage: ["pl.Stage", { inputs: null, slide: false, lr: 1, batch: null, noise: null }],
    sum: ["pl.Sum", { sign: false }], table: ["pl.Table", {}], tasks: ["pl.Tasks", { weights: null, solved: null }],
    uniform: ["pl.laws.Uniform", {}], biased: ["pl.laws.Biased", {}], mixture: ["pl.laws.Mixture", { second: { type: "uniform" } }], active: ["pl.laws.Active", { law: { type: "uniform" } }], permuted: ["pl.laws.Permuted", {}], pairs: ["pl.laws.Pairs", { law: { type: "uniform" } }],
    mlp: ["pl.MLP", { activation: "relu", output_bias: true, bias: true }], neuron: ["pl.Neuron", {}], polynet: ["pl.PolyNet", {}],
    sgd: ["pl.SGD", { schedule: "constant", rates: null, noise: 0, weight_decay: 0, decay_form: "coupled", momentum: 0, nesterov: false, clip: null }],
    adam: ["pl.Adam", { schedule: "constant", rates: null, noise: 0, b1: 0.9, b2: 0.999, eps: 1e-8, weight_decay: 0, decay_form: "coupled", clip: null }],
    rmsprop: ["pl.RMSProp", { schedule: "constant", rates: null, noise: 0, alpha: 0.99, eps: 1e-8, momentum: 0, weight_decay: 0, decay_form: "coupled", clip: null }],
    "sign-sgd": ["pl.SignSGD", { schedule: "constant", rates: null, noise: 0, b1: 0, b2: 0, weight_decay: 0, decay_form: "coupled", clip: null }],
    learner: ["pl.Learner", { init: "torch", loss: "hinge", batch: 32 }],
    protocol: ["pl.Protocol", { max_steps: 100000, eval_every: 10, eval_size: 8192, threshold: 1, consecutive: 1, fresh: false, within: null, until_loss: null }],
  };
  const code = (value) => {
    if (value === null) return "None";
    if (typeof value === "boolean") return value ? "True" : "False";
    if (typeof value !== "object") return JSON.stringify(value);
    if (Array.isArray(value)) return `(${value.map(code).join(", ")}${value.length === 1 ? "," : ""})`;
    if (value.type === "product") return code(value.support);
    const [name, defaults] = MADE[value.type], counted = Array.isArray(value.support) && "k" in value && JSON.stringify(value.support) === JSON.stringify(first(value.k));
    const left = value.type === "polynomial" ? ["type", "k", "support"] : ["type", counted ? "support" : "k"];
    const parts = Object.entries(value).filter(([field, each]) => !left.includes(field) && !(field in defaults && JSON.stringify(defaults[field]) === JSON.stringify(each)));
    return `${name}(${parts.map(([field, each]) => `${field}=${code(each)}`).join(", ")})`;
  };
  const python = ({ setup, count, seed }) => `import paritylab as pl

result = pl.measure(
    ${code(setup.problem)},
    ${code(setup.learner)},
    ${code(setup.protocol)},
    runs=${count}, seed=${seed}, engine="lanes",
)
print(result)`;

  // --- and in a shell, where 'paritylab measure' has the words for it ---
  const shell = ({ setup, count, seed }) => {
    const { problem: p, learner: l, protocol } = setup, o = l.optimiser, words = ["paritylab measure"], target = targetOf(p), inputs = lawOf(p);
    const say = (name, value, usual) => { if (value !== usual && value !== undefined && value !== null) words.push(value === true ? `--${name}` : `--${name} ${value}`); };
    const plain = !(p.stages ?? []).length && !p.evaluation && (p.scale ?? 1) === 1 && !p.short_last && !o.rates && target !== "other" && inputs !== "other";
    const usual = JSON.stringify(p.support ?? p.target?.support ?? first(kOf(p))) === JSON.stringify(first(kOf(p)));
    if (!plain || !usual || l.network.bias === false || l.network.output_bias === false) return null;
    say("n", p.n, 30);
    if (target === "majority" || target === "staircase") say("target", `${target}:${kOf(p)}`);
    else say("k", kOf(p), 3);
    say("leak", p.leak);
    say("inputs", inputs, "uniform");
    say("noise", p.noise, 0);
    say("sample", p.sample);
    say("replacement", p.replacement, false);
    say("network", l.network.type, "mlp");
    if (l.network.type === "mlp") say("width", [l.network.width].flat().join(" "), "10");
    say("degree", l.network.degree);
    say("activation", l.network.activation, "relu");
    say("init", l.init.includes(" ") ? `'${l.init}'` : l.init, "torch");
    say("loss", l.loss, "hinge");
    say("optimiser", o.type, "sgd");
    say("lr", o.lr, 0.1);
    say("momentum", o.momentum, 0);
    say("nesterov", o.nesterov, false);
    if (o.type === "adam" && (o.b1 !== 0.9 || o.b2 !== 0.999)) say("betas", `${o.b1} ${o.b2}`);
    say("eps", o.eps, 1e-8);
    say("clip", o.clip);
    say("weight-decay", o.weight_decay, 0);
    say("decay-form", o.decay_form, "coupled");
    say("gradient-noise", o.noise, 0);
    say("batch", l.batch, 32);
    say("runs", count, 1000);
    say("seed", seed, 0);
    say("max-steps", protocol.max_steps, 100000);
    say("eval-every", protocol.eval_every, 10);
    say("eval-size", protocol.eval_size, 8192);
    say("threshold", protocol.threshold, 1);
    say("consecutive", protocol.consecutive, 1);
    say("fresh", protocol.fresh, false);
    say("within", protocol.within);
    words.push("--engine lanes");
    return words.join(" ");
  };

  // Whether start weights are those of Python to the last bit: norms on a sphere are rounded there by the processor at hand.
  const exact = (setup) => !/\b(sphere|mean-field)\b/.test(setup.learner.init);

  // What 'paritylab store merge' brings into a store.
  const records = ({ setup, seed }, networks) => {
    const done = networks.records.filter(Boolean), column = (name) => done.map((record) => (Number.isNaN(record[name]) ? null : record[name]));
    const told = Object.fromEntries(["run", "status", "t_c", "steps", "accuracy", "loss"].map((name) => [name, column(name)]));
    return JSON.stringify({ paritylab: "records", format: 1, setup, engine: window.paritylab.engine.label, rounding: networks.isa, seed, ...told });
  };
  return { blank, controls, toHash, fromHash, python, shell, records, exact };
})();
