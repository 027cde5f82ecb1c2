// Small builders. Text reaches the page only as text (textContent, append), never as markup.
const UNKNOWN = "–";

function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

function section(id, heading, note, ...children) {
  const head = make("h3", { id }, heading);
  return make("section", { "aria-labelledby": id }, head, note ? make("p", { class: "note" }, note) : null, ...children);
}

function fixed(value, digits, unit = "") {
  return typeof value === "number" ? value.toFixed(digits) + unit : UNKNOWN;
}

function plural(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function percent(part, whole) {
  return whole ? `${((100 * part) / whole).toFixed(1)}\u00a0%` : UNKNOWN;
}
