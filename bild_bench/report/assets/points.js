// The sortable table of points.
const signed = (value, digits) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(digits)}`;

function difference(digits) {
  return (estimate) => {
    if (!estimate) return [UNKNOWN];
    const [value, low, high] = estimate;
    const shown = [signed(value, digits)];
    if (low < high) shown.push(make("small", {}, `${signed(low, digits)} to ${signed(high, digits)}`));
    return shown;
  };
}

function interval(digits, unit = "") {
  return (estimate) => {
    if (!estimate) return [UNKNOWN];
    const [value, low, high] = estimate;
    const shown = [fixed(value, digits, unit)];
    if (low < high) shown.push(make("small", {}, `${low.toFixed(digits)} – ${high.toFixed(digits)}`));
    return shown;
  };
}

const figure = (digits) => (value) => [fixed(value, digits)];
const first = (estimate) => (estimate ? estimate[0] : null);

function columns(metric) {
  return [
    ["quality", metric.replaceAll("-", "\u2011"), interval(2), first, "95 % interval over texts"],
    ["quality_difference", "vs vanilla", difference(2), first, "quality minus the baseline's on the same texts"],
    ["speedup_decoding", "Decoding speed‑up", interval(2, "×"), first, "paired with the baseline, encoders left out"],
    ["speedup_total", "Total speed‑up", interval(2, "×"), first, "paired with the baseline, encoders included"],
    ["ms_per_token", "ms / token", figure(2), null, "decoding only"],
    ["fallback_pct", "Fallback %", figure(1), null, "hand-overs to the large model, of generated tokens"],
    ["rollback_pct", "Rollback %", figure(1), null, "hand-overs that cut the text, of generated tokens"],
    ["large_share_pct", "Large %", figure(1), null, "tokens that the large model chose"],
    ["length_ratio", "Length", figure(3), null, "generated tokens over the baseline's"],
    ["identical_pct", "Same text %", figure(1), null, "texts that equal the baseline's, token for token"],
  ];
}

function pointTable(group, prefix, choose) {
  const shown = columns(group.metric);
  const body = make("tbody");
  const rows = group.points.map((point, place) => ({ point, place, row: pointRow(point, shown, choose) }));
  const heads = [["label", "Method", null, (label) => label, "as its command names it"], ...shown].map(
    ([name, title, , value, hint]) => sortable(name, title, value, hint, rows, body),
  );
  body.append(...rows.map(({ row }) => row));
  const frontOnly = make("input", { type: "checkbox", id: `${prefix}-front-only` });
  frontOnly.addEventListener("change", () => body.classList.toggle("front-only", frontOnly.checked));
  const control = make("label", { class: "check", for: frontOnly.id }, frontOnly, "Only baselines and the front");
  const table = make("table", { class: "points" }, make("thead", {}, make("tr", {}, ...heads)), body);
  const wide = make("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Figures of all points" }, table);
  return { element: make("div", {}, make("p", { class: "controls" }, control), wide), rows };
}

function pointRow(point, shown, choose) {
  const name = make("button", { class: "link", type: "button", title: "Show its texts" }, point.label);
  name.addEventListener("click", () => choose(point.label, true));
  const head = make("th", { scope: "row" }, name);
  if (point.front) head.append(make("span", { class: "star", title: "on the front", role: "img", "aria-label": "on the front" }, "★"));
  if (point.baseline) head.append(make("span", { class: "badge" }, "baseline"));
  if (point.pruned) head.append(make("span", { class: "badge", title: point.pruned }, "pruned"));
  const cells = shown.map(([key, , show]) => make("td", {}, ...show(point[key])));
  const kind = point.baseline || point.front ? "kept" : "other";
  return make("tr", { class: `${kind}${point.front ? " on-front" : ""}`, "data-label": point.label }, head, ...cells);
}

function sortable(name, title, value, hint, rows, body) {
  const button = make("button", { type: "button", title: hint }, title);
  const head = make("th", { scope: "col", "aria-sort": "none", "data-column": name }, button);
  const key = ({ point }) => (value ? value(point[name]) : point[name]);
  button.addEventListener("click", () => {
    // Figures start with the largest, names with A.
    const before = head.getAttribute("aria-sort");
    const order = before === "none" ? (name === "label" ? "ascending" : "descending") : before === "ascending" ? "descending" : "ascending";
    for (const other of head.parentElement.children) other.setAttribute("aria-sort", "none");
    head.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    rows.sort((a, b) => compare(key(a), key(b), sign) || a.place - b.place);
    body.append(...rows.map(({ row }) => row));
  });
  return head;
}

function compare(a, b, sign) {
  if (a === null || b === null || a === undefined || b === undefined) return (b ?? null) === (a ?? null) ? 0 : (a ?? null) === null ? 1 : -1;
  return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
}
