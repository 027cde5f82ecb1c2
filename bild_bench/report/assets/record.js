// How it was measured: commands, signatures, environment.
function record({ shared, experiments }) {
  const several = experiments.length > 1;
  const common = make("article", { class: "record" }, several ? make("h4", {}, "Shared by all") : null, ...folded(shared));
  return [...experiments.map((experiment) => experimentRecord(experiment, several)), common];
}

function experimentRecord(experiment, several) {
  const lines = [["Directory", experiment.directory], ["Experiment", experiment.id], ["Started", experiment.created]];
  lines.push(["Ended", experiment.completed ?? "not complete"], ["Code", experiment.code_version]);
  lines.push(...experiment.signatures.map((text) => ["Signature", text]), ["Points", experiment.points.join(", ")]);
  return make(
    "article", { class: "record" },
    copyable(experiment.command), definitions(lines), ...(several ? folded(experiment.sections) : []),
  );
}

function folded(sections) {
  const known = Object.entries(sections).filter(([, lines]) => lines.length);
  return known.map(([name, lines]) => make("details", {}, make("summary", {}, name), definitions(lines)));
}

function copyable(command) {
  const code = make("code", {}, command);
  const button = make("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(command);
      button.textContent = "Copied";
    } catch {
      // Opened from a file the clipboard may be out of reach: a selected command is one key away from it.
      getSelection().selectAllChildren(code);
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return make("div", { class: "copyable" }, make("pre", {}, code), button);
}

function definitions(lines) {
  return make("dl", { class: "lines" }, ...lines.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}
