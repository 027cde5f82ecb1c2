// One text at a time: what each point generated, token by token.
const KINDS = { S: "small", L: "large", x: "cut" };
// An end token and its like, by how tokenizers name them.
const SPECIAL = /^<\|?\/?[\w-]+\|?>$/;
const WHO = { S: "small model", L: "large model", x: "small model, rolled back" };

function drilldown(group, prefix) {
  const texts = group.texts.shown;
  if (!texts.length) return null;
  const picker = make("select", { id: `${prefix}-text`, class: "pick" });
  texts.forEach((text, place) => picker.append(make("option", { value: place }, `${text.number} · ${text.source}`.slice(0, 90))));
  const methods = make("select", { id: `${prefix}-methods`, class: "pick" });
  methods.append(make("option", { value: "front" }, "Baselines and the front"), make("option", { value: "all" }, "All points"));
  group.points.forEach((point) => methods.append(make("option", { value: `=${point.label}` }, point.label)));
  const panel = make("div", { class: "text", "aria-live": "polite" });
  const draw = () => panel.replaceChildren(...textPanel(group, texts[Number(picker.value)], methods.value));
  const step = (by) => {
    picker.value = String((Number(picker.value) + by + texts.length) % texts.length);
    draw();
  };
  picker.addEventListener("change", draw);
  methods.addEventListener("change", draw);
  const back = make("button", { type: "button", class: "step", "aria-label": "Previous text", on: { click: () => step(-1) } }, "←");
  const on = make("button", { type: "button", class: "step next", "aria-label": "Next text", on: { click: () => step(1) } }, "→");
  const controls = make(
    "div", { class: "controls" },
    make("label", { for: picker.id }, "Text"), make("span", { class: "joined" }, back, picker, on),
    make("label", { for: methods.id }, "Outputs of"), methods,
  );
  draw();
  const choose = (label) => {
    methods.value = `=${label}`;
    draw();
  };
  return { element: make("div", { class: "drilldown" }, controls, legend(), panel), choose };
}

function legend() {
  const entries = Object.keys(KINDS).map((kind) => make("span", { class: "key" }, make("span", { class: `token ${KINDS[kind]}` }, WHO[kind])));
  return make("p", { class: "legend" }, ...entries);
}

function textPanel(group, text, methods) {
  const kept = new Set(group.points.filter((point) => point.baseline || point.front).map((point) => point.label));
  const wanted = (label) => methods === "all" || (methods === "front" ? kept.has(label) : methods === `=${label}` || label === baselineOf(group, methods.slice(1)));
  const facts = [["Source", text.source], ...text.references.map((reference) => ["Reference", reference])];
  const given = make("dl", { class: "given" }, ...facts.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
  const outputs = text.outputs.filter((output) => wanted(output.label));
  const panels = outputs.map((output) => {
    const base = baselineOf(group, output.label);
    return outputPanel(group, output, text.outputs.find((other) => other.label === base));
  });
  return [given, ...panels];
}

function times(ratio) {
  return `${ratio.toFixed(ratio < 10 ? 2 : 0)}×`;
}

// The baseline of the same experiment: times of another one were not measured side by side.
function baselineOf(group, label) {
  const point = group.points.find((other) => other.label === label);
  const base = point && group.points.find((other) => other.baseline && other.experiment === point.experiment);
  return base && base.label;
}

function outputPanel(group, output, base) {
  const facts = [];
  if (!output.error) {
    facts.push(plural(output.generated, "token"));
    if (output.rollbacks) facts.push(plural(output.rollbacks, "rollback"));
    if (base && base !== output && base.seconds && output.seconds) facts.push(`${times(base.seconds / output.seconds)} on this text`);
  }
  const head = make("header", {}, make("h4", {}, output.label), make("p", { class: "note" }, facts.join(" · ")));
  const written = make("p", { class: "written" });
  if (output.error) written.append(make("span", { class: "failed" }, `failed: ${output.error}`));
  else if (output.trace) {
    written.append(...tokens(group.texts.pieces, output.trace));
    written.setAttribute("role", "group");
    written.setAttribute("aria-label", `${output.label}, token by token`);
  }
  else written.append(output.text);
  return make("article", { class: "output", "data-label": output.label }, head, written);
}

function tokens(pieces, trace) {
  return trace.pieces.flatMap((piece, place) => {
    const kind = trace.kinds[place];
    const text = pieces[piece];
    const body = text.trimStart();
    const token = make("span", { class: `token ${KINDS[kind]}${SPECIAL.test(body) ? " special" : ""}`, tabindex: place ? -1 : 0, "data-hint": hint(kind, trace.probs[place], trace.nlls[place]) }, body || "␣");
    // The space before a word stays outside, so that neither tint nor line runs through it.
    return body.length < text.length ? [text.slice(0, text.length - body.length), token] : [token];
  });
}

function hint(kind, prob, nll) {
  const parts = [WHO[kind]];
  if (prob !== null) parts.push(`max p(S) ${(prob / 1000).toFixed(3)}`);
  if (nll !== null) parts.push(`−ln p(L) ${typeof nll === "number" ? nll.toFixed(2) : nll}`);
  return parts.join(" · ");
}
