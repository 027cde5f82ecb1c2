// Plots, by Vega-Embed.
// `ast` evaluates a plot's expressions without eval, which the page's policy forbids.
const EMBED = {
  mode: "vega-lite",
  renderer: "svg",
  ast: true,
  defaultStyle: false,
  forceActionsMenu: true,
  tooltip: { disableDefaultStyle: true },
  actions: { export: true, source: false, compiled: false, editor: false },
};

function plot(spec, name, description, onPoint) {
  const place = make("div", { class: "plot" });
  const figure = make("figure", { class: `figure ${name}` }, place);
  EMBED.downloadFileName = `bild-bench-${name}`;
  // The library reads specifications of version 5 as they are; the name of a newer one keeps it from saying so.
  const newer = { ...spec, $schema: "https://vega.github.io/schema/vega-lite/v6.json" };
  vegaEmbed(place, newer, EMBED).then(
    ({ view }) => {
      const drawing = place.querySelector("svg.marks");
      drawing.setAttribute("role", "img");
      drawing.setAttribute("aria-label", description);
      place.dataset.drawn = "yes";
      if (onPoint) view.addEventListener("click", (_, item) => item && item.datum && onPoint(item.datum.label));
    },
    (error) => place.append(make("p", { class: "notice" }, `This plot could not be drawn: ${error.message}`)),
  );
  return figure;
}
