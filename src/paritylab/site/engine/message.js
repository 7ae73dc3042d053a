"use strict";
// From a Setup's JSON to the message that native/web.cpp reads: what engines/configuration.py and engines/sources.py say of it.
const message = (() => {
  class Refusal extends Error {}
  const require = (good, text) => { if (!good) throw new Refusal(text); };

  // Everything takes a multiple of 8 bytes: native/message.h.
  class Writer {
    constructor() { this.parts = []; this.size = 0; }
    put(array) {
      const bytes = new Uint8Array(Math.ceil(array.byteLength / 8) * 8);
      bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength));
      this.parts.push(bytes);
      this.size += bytes.length;
    }
    whole(...numbers) { for (const each of numbers) this.put(BigInt64Array.of(BigInt(each))); }
    real(...numbers) { for (const each of numbers) this.put(Float64Array.of(Math.fround(each))); }
    many(array) { this.whole(array.length); this.put(array); }
    floats(numbers) { this.many(Float32Array.from(numbers)); }
    words(numbers) { this.many(Uint32Array.from(numbers)); }
    wholes(numbers) { this.many(BigInt64Array.from(numbers, BigInt)); }
    bytes() {
      const all = new Uint8Array(this.size);
      let at = 0;
      for (const part of this.parts) { all.set(part, at); at += part.length; }
      return all;
    }
  }

  // --- specs such as "zigzag:3" ---
  const split = (spec) => { const [name, tail] = spec.split(":"); return [name, tail === undefined ? [] : tail.split(",").map(Number)]; };
  const among = (what, name, known) => { const at = known.indexOf(name); require(at >= 0, `the browser's engine has no ${what} ${name}`); return at; };

  const ACTIVATIONS = ["clip", "power", "zigzag", "triangle", "polynomial", "sinusoid", "gelu"];
  const activation = (spec) => {
    const [name, numbers] = split(spec);
    const told = {
      relu: () => ["clip", [Infinity]], relu6: () => ["clip", [6]], "clipped-relu": () => ["clip", [numbers[0] ?? 1]],
      power: () => ["power", numbers], zigzag: () => ["zigzag", numbers], "infinite-zigzag": () => ["triangle", numbers],
      oscillating: () => ["polynomial", oscillating(numbers[0])], sinusoid: () => ["sinusoid", [numbers[1] ?? 1, numbers[0]]],
      gelu: () => ["gelu", []],
    }[name];
    require(told, `the browser's engine has no activation ${spec}`);
    const [kind, params] = told();
    return [ACTIVATIONS.indexOf(kind), params];
  };
  // Coefficients, constant first, of the polynomial of degree k through (k - 2j, (-1)^j): elimination with pivots.
  const oscillating = (k) => {
    const size = k + 1, rows = Array.from({ length: size }, (_, j) => [...Array.from({ length: size }, (_, i) => (k - 2 * j) ** i), (-1) ** j]);
    for (let c = 0; c < size; c++) {
      let pivot = c;
      for (let r = c + 1; r < size; r++) if (Math.abs(rows[r][c]) > Math.abs(rows[pivot][c])) pivot = r;
      [rows[c], rows[pivot]] = [rows[pivot], rows[c]];
      for (let r = c + 1; r < size; r++) {
        const factor = rows[r][c] / rows[c][c];
        for (let i = c; i <= size; i++) rows[r][i] -= factor * rows[c][i];
      }
    }
    const found = new Array(size).fill(0);
    for (let r = size - 1; r >= 0; r--) {
      let rest = rows[r][size];
      for (let i = r + 1; i < size; i++) rest -= rows[r][i] * found[i];
      found[r] = rest / rows[r][r];
    }
    return found.map((value, i) => ((i + k) % 2 ? 0 : value));
  };

  const LOSSES = ["hinge", "square", "logistic", "correlation", "l1"];
  const loss = (spec) => {
    const [name, numbers] = split(spec);
    return [among("loss", name, LOSSES), name === "hinge" || name === "logistic" ? [numbers[0] ?? 1] : []];
  };

  const RULES = ["sgd", "momentum", "adam", "rmsprop", "sign"];
  const rule = (o) => {
    const told = {
      sgd: () => (o.momentum ? ["momentum", [o.momentum, o.nesterov ? 1 : 0]] : ["sgd", []]),
      adam: () => ["adam", [o.b1, o.b2, o.eps]], rmsprop: () => ["rmsprop", [o.alpha, o.eps, o.momentum]],
      "sign-sgd": () => ["sign", [o.b1 ?? 0, o.b2 ?? 0]],
    }[o.type];
    require(told, `the browser's engine has no optimiser ${o.type}`);
    const [kind, params] = told();
    return [RULES.indexOf(kind), params];
  };
  const decays = (o, plain) => {
    const decay = o.weight_decay ?? 0, form = o.decay_form ?? "coupled";
    const of = { coupled: 0, decoupled: 0, plain: 0, [form]: decay };
    return plain ? { ...of, coupled: 0, decoupled: of.coupled + of.decoupled } : of; // without memory both are the same
  };

  // --- networks ---
  const FAMILIES = ["mlp", "neuron", "polynet"];
  const shape = (network) => {
    const family = among("network", network.type, FAMILIES);
    require((network.inputs ?? "signs") === "signs", `the browser's engine has no inputs as ${network.inputs}`);
    require((network.outputs ?? 1) === 1, "the browser's engine has networks with one output");
    const widths = network.type === "mlp" ? [network.width].flat() : [network.type === "polynet" ? network.degree : 1];
    const bias = network.type !== "mlp" || (network.bias ?? true) ? (network.output_bias ?? true ? 1 : 2) : 0;
    return { family, widths, bias };
  };

  // --- problems ---
  const half = (x) => { const low = Math.floor(x), rest = x - low; return rest > 0.5 || (rest === 0.5 && low % 2) ? low + 1 : low; }; // Python's round
  const share = (x) => Math.min(half(x * 2 ** 32), 2 ** 32 - 1);
  const mask = (support, n) => {
    const words = new Uint32Array(Math.ceil(n / 32));
    for (const j of support) words[j >> 5] |= 1 << (j & 31);
    return words;
  };
  const UNIT = 65536, DIGITS = 16;

  // [weight, {chances, copies}] of a law: setups/problems/laws.py.
  const components = (law, n) => {
    const of = {
      uniform: () => [[1, { chances: new Array(n).fill(UNIT / 2), copies: [] }]],
      biased: () => [[1, { chances: Array.from({ length: n }, (_, j) => half((1 - (Array.isArray(law.p) ? law.p[j] : law.p)) * UNIT)), copies: [] }]],
      mixture: () => [[law.rho, law.first], [1 - law.rho, law.second]].flatMap(([part, inner]) => components(inner, n).map(([weight, each]) => [part * weight, each])),
      active: () => {
        const moving = new Set(Array.isArray(law.bits) ? law.bits : Array.from({ length: law.bits }, (_, j) => j));
        return components(law.law, n).map(([weight, each]) => [weight, { chances: each.chances.map((c, j) => (moving.has(j) ? c : 0)), copies: each.copies.filter(([, j]) => moving.has(j)) }]);
      },
      permuted: () => components(law.law, n).map(([weight, each]) => {
        const chances = new Array(n).fill(0);
        law.places.forEach((place, j) => { chances[place] = each.chances[j]; });
        return [weight, { chances, copies: each.copies.map(([i, j]) => [law.places[i], law.places[j]]) }];
      }),
      pairs: () => {
        const second = new Set(law.pairs.map(([, j]) => j)), chance = half(((1 - law.correlation) / 2) * UNIT);
        return components(law.law, n).map(([weight, each]) => [weight, { chances: each.chances.map((c, j) => (second.has(j) ? chance : c)), copies: [...each.copies.filter(([, j]) => !second.has(j)), ...law.pairs] }]);
      },
    }[law.type];
    require(of, `the browser's engine draws no inputs of the law ${law.type}`);
    return of();
  };
  const drawn = (law, n) => {
    const parts = components(law, n).filter(([weight]) => weight > 0), words = Math.ceil(n / 32);
    let sum = 0;
    const cumulative = parts.slice(0, -1).map(([weight]) => share((sum += weight)));
    const planes = parts.flatMap(([, each]) => Array.from({ length: DIGITS }, (_, i) => [...mask(each.chances.flatMap((c, j) => ((c >> (DIGITS - 1 - i)) & 1 ? [j] : [])), n)]).flat());
    const always = parts.flatMap(([, each]) => [...mask(each.chances.flatMap((c, j) => (c >= UNIT ? [j] : [])), n)]);
    const [, only] = parts[0];
    const plain = parts.length === 1 && !only.copies.length && only.chances.every((c) => c === UNIT / 2);
    return { cumulative, planes, always, copies: parts.map(([, each]) => each.copies), plain, words };
  };

  const TARGETS = ["product", "sum", "table", "tasks"], UNIFORM = { type: "uniform" };
  const KNOWN = ["parity", "leaky-parity", "polynomial", "problem"];
  const problemOf = (problem, protocol, batch) => {
    among("problem", problem.type, KNOWN);
    require(!problem.inputs || problem.type === "problem", "the browser's engine draws no inputs by a function");
    require(problem.support !== "random", "the browser's engine has no random supports");
    const n = problem.n, words = Math.ceil(n / 32), composed = problem.type === "problem", stages = problem.stages ?? [];
    const target = composed ? problem.target : problem.type === "polynomial" ? { type: "sum", terms: problem.terms } : { type: "product", support: problem.support };
    require(typeof target === "object", "the browser's engine has no target by a function");
    require(stages.every((stage) => stage.lr === 1), "the browser's engine has no stages that change the rate");
    const given = composed ? [...stages.map((stage) => stage.inputs ?? problem.inputs), problem.inputs, problem.evaluation ?? problem.inputs] : [UNIFORM, UNIFORM];
    const names = given.map((law) => JSON.stringify(law)), different = [...new Set(names)], places = names.map((name) => different.indexOf(name));
    const laws = different.map((name) => drawn(JSON.parse(name), n)), simple = target.type !== "tasks" && laws.every((law) => law.plain);
    const own = target.type === "product" ? mask(target.support, n) : new Uint32Array(words);
    const changes = stages.some((stage) => stage.batch || stage.noise !== null);
    const plain = !changes && (composed ? simple && target.type === "product" && problem.scale === 1 : problem.type === "parity");
    if (plain) return { mask: own, told: null };
    const stride = words + (problem.type === "leaky-parity" ? 1 : simple ? 0 : 3);
    return { mask: own, told: { n, words, stride, laws, places, stages, batch, target, scale: problem.scale ?? 1, leak: problem.type === "leaky-parity" ? half(problem.leak * 2 ** 31) : -1, protocol } };
  };
  const allowed = (protocol, size) => Math.floor((1 - protocol.threshold) * size + 1e-9);
  const putProblem = (w, p) => {
    w.whole(p.stride, p.leak);
    w.wholes(p.laws.map((law) => law.copies.length));
    w.wholes(p.laws.map((law) => (law.plain ? 1 : 0)));
    for (const name of ["cumulative", "planes", "always"]) w.words(p.laws.flatMap((law) => law[name]));
    w.wholes(p.laws.flatMap((law) => law.copies.map((pairs) => pairs.length)));
    w.words(p.laws.flatMap((law) => law.copies.flat(2)));
    w.whole(p.places.at(-2), p.places.at(-1));
    w.wholes(p.stages.flatMap((stage, i) => [stage.until, p.places[i], p.places[stage.slide ? i + 1 : i], stage.noise === null ? -1 : share(stage.noise), stage.batch || p.batch]));
    require(!p.target.controls && !p.target.in_turn, "the browser's engine has tasks with one control bit each, drawn by weight");
    const { target } = p, tasks = target.type === "tasks" ? target.supports : [];
    w.whole(among("target", target.type, TARGETS));
    w.real(p.scale);
    const terms = target.type === "sum" ? target.terms : [];
    w.floats(terms.map(([c]) => c));
    w.words(terms.flatMap(([, support]) => [...mask(support, p.n)]));
    w.whole(target.type === "sum" && target.sign ? 1 : 0);
    w.wholes(target.type === "table" ? target.places : []);
    const digits = target.type === "table" ? [...target.table].map((digit) => parseInt(digit, 16)) : [];
    w.words(Array.from({ length: Math.ceil(digits.length / 8) }, (_, i) => digits.slice(8 * i, 8 * i + 8).reduce((word, digit, j) => (word | (digit << (4 * j))) >>> 0, 0)));
    const weights = target.weights ?? tasks.map(() => 1), total = weights.reduce((a, b) => a + b, 0);
    let sum = 0;
    w.words(tasks.slice(1).map((_, t) => share((sum += weights[t]) / total)));
    w.words(tasks.flatMap((support) => [...mask(support, p.n)]));
    const size = (t) => Math.ceil((p.protocol.eval_size - t) / tasks.length), judged = target.solved ?? tasks.map((_, t) => t);
    w.wholes(tasks.map((_, t) => (judged.includes(t) ? allowed(p.protocol, size(t)) : -1)));
  };

  // --- starts: setups/inits.py and weights.py ---
  const MOST_GRAINS = 2 ** 12;
  const KINDS = ["uniform", "signs", "normal", "near-signs", "wide-signs", "few-signs", "points", "sphere", "tilted-signs"];
  const fanIn = (gain) => (a) => gain / Math.sqrt(a);
  const coarse = (number) => { const far = number * (2 ** 41 + 1); return far - (far - number); };
  const gcd = (a, b) => (b ? gcd(b, a % b) : Math.abs(a));
  const commonGrain = (points) => {
    for (let ten = 1; ten < 1e12; ten *= 10) {
      const wholes = points.map((point) => Math.round(point * ten));
      if (!wholes.every((whole, i) => whole / ten === points[i])) continue;
      const divisor = wholes.reduce(gcd, 0);
      return wholes.every((whole) => Math.abs(whole) <= MOST_GRAINS * divisor) ? divisor / ten : null;
    }
    return null;
  };
  // Of each law the kernel's name and numbers, the scale of a layer, and the grain if it has one.
  const LAWS = {
    uniform: () => ["uniform", [], () => 1], torch: () => ["uniform", [], fanIn(1)],
    xavier: () => ["uniform", [], (a, b) => Math.sqrt(6 / (a + b))], "xavier-sign": () => ["signs", [], (a, b) => Math.sqrt(6 / (a + b)), 1],
    sign: () => ["signs", [], fanIn(1), 1], rademacher: () => ["signs", [], fanIn(1), 1],
    gaussian: () => ["normal", [], fanIn(1)], kaiming: () => ["normal", [], fanIn(Math.sqrt(2))],
    "perturbed-rademacher": (s) => ["near-signs", [s], fanIn(1 / Math.sqrt(1 + s ** 2)), s ? null : 1],
    "uniform-perturbed": (s) => ["wide-signs", [Math.sqrt(3) * s], fanIn(1 / Math.sqrt(1 + s ** 2)), s ? null : 1],
    "sparse-rademacher": (s) => ["few-signs", [s], fanIn(1 / Math.sqrt(1 - s)), 1],
    discrete: (...points) => {
      const grain = commonGrain(points), scale = fanIn(1 / Math.sqrt(points.reduce((sum, p) => sum + p * p, 0) / points.length));
      return ["points", grain ? points.map((p) => Math.round(p / grain)) : points, scale, grain];
    },
    sphere: (radius = 1) => ["sphere", [], () => radius], "mean-field": (radius = 1) => ["sphere", [], () => radius],
  };
  const RELEASED = { "sparse-rademacher:0.5": 4, "sparse-rademacher:0.2": 5 };
  const start = (spec) => {
    let law = spec, fixed = -1, mirrored = 0, factor = 1;
    const lead = /^fixed:(\d+) /.exec(law);
    if (lead) { fixed = Number(lead[1]); law = law.slice(lead[0].length); }
    if (law.startsWith("mirrored ")) { mirrored = 1; law = law.slice(9); }
    if (law.startsWith("released ")) {
      law = law.slice(9);
      const points = law.startsWith("discrete:") ? law.split(",").length : RELEASED[law];
      if (points) factor = Math.sqrt(1 - 1 / points);
    }
    const [name, numbers] = split(law);
    require(Object.hasOwn(LAWS, name) && !law.includes(" "), `the browser's engine has no initialisation ${spec}`);
    const [kind, params, scale, grain] = LAWS[name](...numbers), spread = kind === "sphere";
    const level = (a, b) => (grain ? coarse(factor * scale(a, b) * grain) : factor * scale(a, b));
    const output = name === "mean-field" ? ["tilted-signs", [numbers[1] ?? 0.5], (a) => (numbers[0] ?? 1) / a] : [kind, params, level];
    return { kind, params, level, output, biased: spread ? 0 : 1, mirrored, fixed };
  };

  // The bytes that web_open reads; a Refusal says in a line what the browser's engine has not.
  const encode = (setup, seed) => {
    const { problem, learner, protocol } = setup, o = learner.optimiser;
    require(o.schedule === "constant", `the browser's engine has no schedule ${o.schedule}`);
    require(!protocol.until_loss, "the browser's engine has no until_loss");
    require(!o.skip_satisfied, "the browser's engine has no skip_satisfied");
    const { family, widths, bias } = shape(learner.network), w = new Writer(), told = problemOf(problem, protocol, learner.batch);
    const [act, actParams] = family === 2 ? [1, [1]] : activation(learner.network.activation), [kind, kindParams] = loss(learner.loss);
    const [by, byParams] = rule(o), decay = decays(o, by === 0 && !o.clip), rates = o.rates ?? [1];
    require(rates.every(Number.isFinite), "the browser's engine takes rates by position");
    w.whole(family, problem.n);
    w.wholes(widths);
    w.whole(bias, act);
    w.floats(actParams);
    w.whole(kind);
    w.floats(kindParams);
    w.whole(learner.batch);
    w.floats([]);
    w.floats(Array.from({ length: widths.length + 1 }, (_, l) => rates[Math.min(l, rates.length - 1)]));
    w.real(decay.decoupled, decay.plain);
    w.whole(problem.sample ?? 0, problem.replacement ? 1 : 0, problem.short_last ? 1 : 0, protocol.eval_every, protocol.eval_size, protocol.fresh ? 1 : 0, allowed(protocol, protocol.eval_size));
    w.real(protocol.within ?? -1);
    w.whole(protocol.consecutive, 5, by);  // the layout is chosen by shape
    w.floats(byParams);
    w.real(o.clip ?? 0, decay.coupled);
    w.whole(0, 0);  // inputs are signs, and all batches move the weights
    w.whole(told.told ? 1 : 0);
    if (told.told) putProblem(w, told.told);
    const law = start(learner.init), sizes = [problem.n, ...widths, ...(family === 0 ? [1] : [])];
    w.whole(KINDS.indexOf(law.kind));
    w.floats(law.params);
    w.whole(KINDS.indexOf(law.output[0]));
    w.floats(law.output[1]);
    w.floats(sizes.slice(1).map((to, l) => (law.output[0] === "tilted-signs" && l === widths.length ? law.output[2] : law.level)(sizes[l], to)));
    w.whole(law.biased, law.mirrored, law.fixed, seed);
    w.real(o.lr, o.noise ?? 0);
    w.whole(share(problem.noise ?? 0), protocol.max_steps);
    w.words(told.mask);
    return w.bytes();
  };
  return { encode, Refusal };
})();
