// What is told of a token: beside the pointer, on a tap, and on the token that has the keyboard's focus.
function tips() {
  const tip = document.getElementById("tip");
  let shown = null;
  const place = () => {
    const box = shown.getClientRects()[0] ?? shown.getBoundingClientRect();
    tip.style.left = `${Math.max(8, Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8))}px`;
    tip.style.top = `${box.bottom + 6 + tip.offsetHeight > innerHeight ? box.top - 6 - tip.offsetHeight : box.bottom + 6}px`;
  };
  const hide = () => {
    if (shown) shown.removeAttribute("aria-describedby");
    shown = null;
    tip.hidden = true;
  };
  const show = (token) => {
    hide();
    shown = token;
    tip.textContent = token.dataset.hint;
    tip.hidden = false;
    token.setAttribute("aria-describedby", "tip");
    place();
  };
  const tokenOf = (target) => (target instanceof Element ? target.closest("[data-hint]") : null);
  const showOrHide = (token) => (token ? show(token) : hide());
  document.addEventListener("pointerover", (event) => {
    if (event.pointerType !== "mouse") return;
    const token = tokenOf(event.target);
    if (token) show(token);
    else if (shown !== document.activeElement) hide();
  });
  document.addEventListener("pointerup", (event) => {
    const token = tokenOf(event.target);
    // The finger is lifted where it was put down: a tap, not the end of a scroll.
    if (token) token.focus({ preventScroll: true });
    showOrHide(token);
  });
  document.addEventListener("focusin", (event) => showOrHide(tokenOf(event.target)));
  document.addEventListener("focusout", hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
    else if (tokenOf(event.target)) step(event);
  });
  document.addEventListener("scroll", () => {
    if (shown && shown === document.activeElement) place();
    else hide();
  }, { passive: true, capture: true });
}

// A text is one stop of the tab key; arrows go from token to token, and the last one visited is where the tab comes back.
function step(event) {
  const line = [...event.target.parentElement.querySelectorAll("[data-hint]")];
  const here = line.indexOf(event.target);
  const to = { ArrowRight: here + 1, ArrowLeft: here - 1, Home: 0, End: line.length - 1 }[event.key];
  if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  if (to < 0 || to >= line.length) return;
  event.target.tabIndex = -1;
  line[to].tabIndex = 0;
  line[to].focus();
}
