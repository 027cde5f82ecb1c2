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
// Paper keeps the plots that the screen has.
const NARROW = matchMedia("screen and (max-width: 46rem)");
const sized = (sizes) => (NARROW.matches ? sizes.narrow : sizes.wide);

// A plot: `specOf` gives what to draw now, and `redraw` draws that once more.
function plot(specOf, name, description, onPoint) {
  const place = make("div", { class: "plot" });
  let drawing = Promise.resolve(null);
  const redraw = () => {
    delete place.dataset.drawn;
    drawing = drawing.then((before) => {
      if (before) before.finalize();
      return draw(place, specOf(), name, description, onPoint);
    });
  };
  NARROW.addEventListener("change", redraw);
  redraw();
  return { element: make("figure", { class: `figure ${name}` }, place), redraw };
}

function draw(place, spec, name, description, onPoint) {
  // The library reads specifications of version 5 as they are; the name of a newer one keeps it from saying so.
  const newer = { ...spec, $schema: "https://vega.github.io/schema/vega-lite/v6.json" };
  return vegaEmbed(place, newer, { ...EMBED, downloadFileName: `bild-bench-${name}` }).then(
    (made) => {
      const drawing = place.querySelector("svg.marks");
      drawing.setAttribute("role", "img");
      drawing.setAttribute("aria-label", description);
      place.dataset.drawn = "yes";
      if (onPoint) made.view.addEventListener("click", (_, item) => item && item.datum && onPoint(item.datum.label));
      return made;
    },
    (error) => {
      place.append(make("p", { class: "notice" }, `This plot could not be drawn: ${error.message}`));
      return null;
    },
  );
}

// A plot of points, with a choice of what its vertical axis shows where there is one.
function pointPlot({ rows, views }, name, id, description, onPoint) {
  let view = views[0];
  const specOf = () => {
    const { spec, places } = sized(view);
    return { ...spec, data: { values: Object.entries(places).map(([label, place]) => ({ ...rows[label], place })) } };
  };
  const { element, redraw } = plot(specOf, name, description, onPoint);
  if (views.length === 1) return element;
  const choices = views.map((one) => {
    const input = make("input", { type: "radio", name: `${id}-view`, value: one.name, checked: one === view, on: { change: () => { view = one; redraw(); } } });
    return make("label", { class: "check" }, input, one.title);
  });
  return make("div", {}, make("fieldset", { class: "controls views" }, make("legend", {}, "Shown"), ...choices), element);
}
