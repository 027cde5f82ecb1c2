// The page: one article a group, put together from the parts in the other files.
const data = JSON.parse(document.getElementById("data").textContent);

const FIGURES = "The table below has the figures.";

function groupPart(group, number) {
  const prefix = `g${number}`;
  const texts = drilldown(group, prefix);
  const corrections = correctionsPart(group, prefix);
  const choose = (label, jump) => {
    const known = table.rows.find(({ point }) => point.label === label);
    if (!known) return;
    table.rows.forEach(({ row }) => row.classList.toggle("chosen", row === known.row));
    if (texts) texts.choose(label);
    if (corrections) corrections.choose(label);
    if (jump && texts) texts.element.scrollIntoView();
  };
  const table = pointTable(group, prefix, choose);
  const facts = make("dl", { class: "facts" }, ...group.facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
  const onPoint = (label) => choose(label, false);
  const best = group.points.filter((point) => point.front).length;
  return make(
    "article", { class: "group", id: prefix, "aria-labelledby": `${prefix}-title` },
    make("h2", { id: `${prefix}-title` }, group.heading), facts,
    answers(group, choose), warnings(group.warnings),
    section(`${prefix}-front`, make("span", { class: "hidden" }, `${group.metric} against speed`), null,
      pointPlot(group.charts.front, "front", `${prefix}-front`, `${group.metric} against decoding speed-up, ${plural(group.points.length, "point")}, ${best} on the front. ${FIGURES}`, onPoint)),
    group.charts.oracle
      ? section(`${prefix}-oracle`, "How much must the large model generate?", "The oracle asks both models for every token and replaces what the large one finds too unlikely: the quality that a given share of replaced tokens allows.",
        pointPlot(group.charts.oracle, "oracle", `${prefix}-oracle`, `${group.metric} against the share of tokens that the large model chose. ${FIGURES}`, onPoint))
      : null,
    group.charts.heatmaps
      ? section(`${prefix}-maps`, "Thresholds", null, plot(() => sized(group.charts.heatmaps), "maps", `Quality, speed-up and rollbacks over alpha_fb and alpha_rb. ${FIGURES}`, onPoint).element)
      : null,
    section(`${prefix}-points`, "All points", "★ is on the front: no other point is at least as good in both quality and decoding speed-up and better in one. Small figures are 95 % intervals.", notes(group.notes), table.element),
    texts ? section(`${prefix}-texts`, "Text by text", textsNote(group.texts), texts.element) : null,
    corrections ? section(`${prefix}-corrected`, "What the large model corrects", "Over all texts of a point.", corrections.element) : null,
    section(`${prefix}-record`, "How it was measured", "The command of every point, what it ran on, and how it was scored.", ...record(group.records)),
  );
}

function textsNote(texts) {
  const which = texts.shown.length < texts.total
    ? `${texts.shown.length} of ${texts.total} texts, evenly spread over the data, so that this file stays small; the results directory has all. `
    : "";
  return `${which}Each token in the colour of its author, in the order of generation; point at one or tap it for what the models thought of it (with the keyboard: tab to a text, then the arrow keys).`;
}

function answers(group, choose) {
  if (!group.answers.length) return null;
  const cards = group.answers.map((answer) => {
    const link = answer.label === null ? null : make("button", { class: "link", type: "button", title: "Show its texts", on: { click: () => choose(answer.label, true) } }, answer.label);
    return make(
      "div", { class: "answer" },
      make("p", { class: "question" }, answer.question), make("p", { class: "figure-large" }, answer.figure, answer.interval ? make("small", { title: "95 % interval over texts" }, answer.interval) : null),
      make("p", { class: "who" }, link), ...answer.notes.map((note) => make("p", { class: "note" }, note)),
    );
  });
  return make("div", { class: "answers" }, ...cards);
}

function warnings(lines) {
  if (!lines.length) return null;
  return make("details", { class: "warnings", open: lines.length <= 4 }, make("summary", {}, plural(lines.length, "warning")), make("ul", {}, ...lines.map((line) => make("li", {}, line))));
}

function notes(lines) {
  return lines.length ? make("ul", { class: "note notes" }, ...lines.map((line) => make("li", {}, line))) : null;
}

// Folded parts belong on paper too.
window.addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((part) => { part.open = true; }));

const main = document.getElementById("report");
document.getElementById("version").textContent = data.version;
if (data.damaged.length) main.append(make("div", { class: "notice" }, make("p", {}, "Left out, because it could not be read:"), make("ul", {}, ...data.damaged.map((line) => make("li", {}, line)))));
main.append(...data.groups.map(groupPart));
if (data.more) main.append(make("p", { class: "notice" }, `${plural(data.more, "more section")}: give the report fewer directories.`));
if (!data.groups.length) main.append(make("p", { class: "notice" }, "No results."));
if (data.groups.length > 1) document.getElementById("contents").append(...data.groups.map((group, number) => make("a", { href: `#g${number}` }, group.title)));
tips();
