/* A guess before the run: a question, an input (or choices), one button. Python judges the guess
and sends the verdict; the answer is not on the page before that. */

function field(model, form) {
  const choices = model.get("choices");
  if (!choices.length) {
    const input = tag("input", {
      type: "text", class: "ls-guess", autocomplete: "off", "aria-label": "Your guess",
    }, form);
    const set = (text, off) => {
      input.value = text || input.value;
      input.disabled = off;
      input.placeholder = off && !input.value ? "no guess" : "";
    };
    return { value: () => input.value, set };
  }
  const list = { class: "ls-choices", role: "radiogroup", "aria-label": "Your guess" };
  const set = tag("div", list, form);
  const name = `ls-choice-${++hatches}`;
  const boxes = choices.map((choice) => {
    const label = tag("label", { class: "ls-switch" }, set);
    const box = tag("input", { type: "radio", name, value: choice }, label);
    label.append(choice);
    return box;
  });
  return {
    value: () => boxes.find((box) => box.checked)?.value || "",
    set(text, off) {
      for (const box of boxes) {
        if (text) box.checked = box.value === text;
        box.disabled = off;
      }
    },
  };
}

/* In JupyterLab a committed guess makes the next cell the active one: Shift + Enter then runs it. */
function onward(el) {
  el.closest(".jp-Cell")?.nextElementSibling?.focus({ preventScroll: true });
}

function render({ model, el }) {
  const root = tag("section", {
    class: "ls ls-predict lockstep-live", "aria-label": "Prediction",
  }, el);
  keepKeys();
  const head = tag("p", { class: "ls-title" }, root);
  tag("span", { class: "ls-badge" }, head, "Predict");
  head.append(model.get("question"));
  const form = tag("form", { class: "ls-group" }, root), answer = field(model, form);
  const commit = tag("button", { type: "submit", class: "ls-main" }, form, "Commit");
  const verdict = tag("p", { class: "ls-say", role: "status" }, root);
  const error = tag("p", { class: "ls-error", role: "alert" }, root);
  const send = (event) => {
    event.preventDefault();
    model.set("attempt", [model.get("attempt")[0] + 1, answer.value()]);
    model.save_changes();
  };
  form.addEventListener("submit", send);
  form.addEventListener("keydown", (event) => {  // JupyterLab takes Enter's own action away
    if (event.key === "Enter" && event.target.tagName === "INPUT") send(event);
  });
  const show = () => {
    const done = model.get("closed"), here = root.contains(document.activeElement);
    answer.set(model.get("guess"), done);
    commit.hidden = done;
    verdict.textContent = model.get("verdict");
    error.textContent = model.get("error");
    if (done && here) onward(el);
  };
  const events = ["guess", "verdict", "error", "closed"].map((name) => `change:${name}`);
  for (const event of events) model.on(event, show);
  show();
  hideStatic(el, model.get("picture"));
  return () => { for (const event of events) model.off(event, show); };
}

export default { render };
