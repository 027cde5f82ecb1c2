// What the large model corrects.
const EXAMPLES = 6;

function correctionsPart(group, prefix) {
  const labels = Object.keys(group.corrections);
  if (!labels.length) return null;
  const most = (label) => group.corrections[label].rollbacks.reduce((sum, count) => sum + count, 0);
  const front = group.points.filter((point) => point.front && labels.includes(point.label)).map((point) => point.label);
  const picker = make("select", { id: `${prefix}-corrections`, class: "pick" }, ...labels.map((label) => make("option", { value: label }, label)));
  picker.value = (front.length ? front : labels).reduce((best, label) => (most(label) > most(best) ? label : best));
  const panel = make("div", { class: "corrections" });
  const draw = () => panel.replaceChildren(...corrected(group.corrections[picker.value]));
  picker.addEventListener("change", draw);
  draw();
  const controls = make("div", { class: "controls" }, make("label", { for: picker.id }, "Point"), picker);
  const choose = (label) => {
    if (!labels.includes(label)) return;
    picker.value = label;
    draw();
  };
  return { element: make("div", {}, controls, panel), choose };
}

function corrected(figures) {
  const cuts = figures.rollbacks.reduce((sum, count) => sum + count, 0);
  const facts = [
    ["Rollbacks", String(cuts)],
    ["Drafts discarded", String(figures.discarded)],
    ["of these drafted again", percent(figures.drafted_twice, figures.discarded)],
  ];
  if (figures.word_starts !== null) facts.push(["Rollbacks at the start of a word", percent(figures.word_starts, cuts)]);
  const cards = make("dl", { class: "cards" }, ...facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  return [cards, make("div", { class: "columns" }, quarters(figures), pairs(figures))];
}

function quarters(figures) {
  const scale = Math.max(...figures.tokens.map((count, place) => (count ? (figures.rollbacks[place] + figures.handovers[place]) / count : 0)), 1e-9);
  const rows = ["first", "second", "third", "last"].map((name, place) => {
    const [cuts, taken, count] = [figures.rollbacks[place], figures.handovers[place], figures.tokens[place]];
    const bars = svg("svg", { class: "bars", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" });
    const widths = [cuts, taken].map((part) => (count ? (100 * part) / count / scale : 0));
    bars.append(svg("rect", { class: "bar-cut", width: widths[0], height: 10 }), svg("rect", { class: "bar-taken", x: widths[0], width: widths[1], height: 10 }));
    return make("tr", {}, make("th", { scope: "row" }, `${name} quarter`), make("td", { class: "bar-cell" }, bars), make("td", {}, percent(cuts, count)), make("td", {}, percent(taken, count)));
  });
  const titles = ["Position in the text", "", "rolled back", "large model, no rollback"];
  const head = titles.map((title, place) => make("th", { scope: "col" }, place > 1 ? make("span", { class: `swatch ${place === 2 ? "cut" : "taken"}` }) : null, title));
  return make("table", { class: "compact" }, make("caption", {}, "Where in the text, of the tokens kept there"), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
}

// What occurs once is no habit: it is counted, and shown only where there is nothing else.
function pairs(figures) {
  const frequent = figures.pairs.filter((pair) => pair.count > 1);
  const shown = frequent.length ? frequent : figures.pairs.slice(0, EXAMPLES);
  const visible = (piece) => piece.trim() || "␣";
  const rows = shown.map((pair) =>
    make("tr", {}, make("td", {}, make("span", { class: "token cut" }, visible(pair.draft))), make("td", { class: "arrow" }, "→"), make("td", {}, make("span", { class: "token large" }, visible(pair.replacement))), make("td", {}, frequent.length ? `${pair.count}×` : "")),
  );
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: 4 }, "No rollback.")));
  const caption = frequent.length || !shown.length ? "Most frequent: draft → replacement" : "Draft → replacement: the first examples";
  const table = make("table", { class: "compact pairs" }, make("caption", {}, caption), make("tbody", {}, ...rows));
  const once = figures.single_pairs;
  const more = !once ? null : frequent.length ? `${plural(once, "further pair")} ${once === 1 ? "occurs" : "occur"} once.` : `${once === 1 ? "The only pair" : `Each of the ${once} pairs`} occurs once: none is frequent.`;
  return make("div", {}, table, more ? make("p", { class: "note" }, more) : null);
}

function svg(tag, options) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(options)) element.setAttribute(name, String(value));
  return element;
}
