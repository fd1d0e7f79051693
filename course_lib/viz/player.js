/* The player: the controls, the clock and the spoken sentence that every engine shares.

It owns play, pause, step, scrub, speed, zoom and the switches; an engine only draws. An engine is

  { node, zoomable, switches: [{key, name, on}],
    draw(clock, step, moving), zoom(factor), flip(key, on), at(pointer event) -> clock or null,
    resized: called when it has laid itself out anew, end() }

`data.steps` is a list of [seconds, sentence, ...], sorted; step k has happened when the clock has
reached its time. The model's `step` follows the player (at most four times a second while it plays)
and leads it when Python sets it. */

const ICONS = {
  play: "M5 3l9 6-9 6z", pause: "M4 3h3.5v12H4zM10.5 3H14v12h-3.5z",
  back: "M4 3h2v12H4zM14 3v12L6.5 9z", forward: "M12 3h2v12h-2zM4 3l7.5 6L4 15z",
  out: "M3 8h12v2H3z", in: "M3 8h5V3h2v5h5v2h-5v5H8v-5H3z",
};
const SPEEDS = [0.25, 0.5, 1, 2, 4];
const SAVE_EVERY = 250;  // milliseconds
const KEYS = {
  " ": "play", k: "play", ArrowLeft: "back", ArrowRight: "forward", Home: "first", End: "final",
  "+": "in", "=": "in", "-": "out",
};

function tag(name, attributes = {}, parent = null, text = null) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== null) node.textContent = text;
  parent?.append(node);
  return node;
}

function timeText(seconds, how) {
  return `${(seconds * how.scale).toFixed(how.digits)} ${how.unit}`;
}

/* Index of the last entry [seconds, ...] that has happened at `clock`; 0 if none has. Bisection. */
function stepAt(entries, clock) {
  let low = 0, high = entries.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (entries[middle][0] <= clock) low = middle + 1; else high = middle;
  }
  return Math.max(0, low - 1);
}

/* The static picture (for readers without a kernel) goes once the widget beside it is alive. */
function hideStatic(el, id) {
  for (let node = el.parentElement; node; node = node.parentElement) {
    const still = node.querySelectorAll(`[data-lockstep="${id}"]`);
    for (const one of still) one.style.display = "none";
    if (still.length) return;
  }
}

/* JupyterLab reads single keys as commands, unless the element in focus keeps them for itself: it
asks that very element before the ones around it. So each control of an output with a live view
says so when it gets the focus, ipywidgets' controls beside the view too. */
function keepKeys() {
  if (window.lockstepKeepsKeys) return;
  window.lockstepKeepsKeys = true;
  document.addEventListener("focusin", ({ target }) => {
    if (target.closest(".jp-OutputArea-output")?.querySelector(".lockstep-live")) {
      target.setAttribute("data-lm-suppress-shortcuts", "true");
    }
  });
}

/* Whether a control in focus has an action of its own for this key. */
function ownKey(control, key) {
  if (control.tagName === "SELECT" || control.type === "range") return !" +-=".includes(key);
  return key === " " && /^(INPUT|BUTTON)$/.test(control.tagName);
}

class Player {
  constructor(el, model, engine) {
    keepKeys();
    Object.assign(this, { el, model, engine, playing: 0, saved: 0, timer: 0 });
    this.reduced = matchMedia("(prefers-reduced-motion: reduce)");
    this.heard = {
      "change:data": () => this.build(), "change:step": () => this.follow(),
      "change:error": () => this.fail(), "change:stale": () => this.fail(),
    };
    for (const [event, call] of Object.entries(this.heard)) model.on(event, call);
    this.build();
  }

  build() {
    this.close();
    const data = this.data = this.model.get("data");
    this.picture = this.engine(data);
    this.root = tag("figure", {
      class: "ls lockstep-live", tabindex: 0, role: "group", "aria-label": data.summary,
    });
    this.addHead();
    this.error = tag("p", { class: "ls-error", role: "alert" }, this.root);
    this.root.append(this.picture.node);
    this.say = tag("p", { class: "ls-say", "aria-live": "polite" }, this.root);
    this.el.replaceChildren(this.root);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.picture.node.addEventListener("pointerdown", (event) => this.point(event));
    this.picture.node.addEventListener("pointermove", (event) => {
      if (event.buttons & 1 && event.pointerType !== "touch") this.point(event);
    });
    this.step = Math.min(Math.max(0, this.model.get("step")), this.last);
    this.clock = data.steps[this.step][0];
    this.picture.resized = () => this.show();
    this.fail();
    this.show();
    hideStatic(this.el, data.id);
  }

  get last() { return this.data.steps.length - 1; }

  addHead() {
    const head = tag("figcaption", { class: "ls-head" }, this.root);
    tag("span", { class: "ls-title" }, head, this.data.title);
    this.time = tag("span", { class: "ls-time" }, head);
    const bar = tag("div", { class: "ls-bar" }, this.root);
    const main = tag("div", { class: "ls-group ls-transport" }, bar);
    this.button(main, "back", "Step back");
    this.playButton = this.button(main, "play", "Play");
    this.button(main, "forward", "Step forward");
    this.scrub = tag("input", {
      type: "range", min: 0, max: this.last, step: 1, value: 0, class: "ls-scrub",
      "aria-label": "Step",
    }, main);
    this.scrub.addEventListener("input", () => { this.stop(); this.go(Number(this.scrub.value)); });
    this.speed = tag("select", { class: "ls-speed", "aria-label": "Speed", title: "Speed" }, main);
    for (const s of SPEEDS) tag("option", { value: s }, this.speed, `${s}×`);
    this.speed.value = "1";
    if (!this.last) main.style.display = this.time.style.display = "none";
    this.addExtras(tag("div", { class: "ls-group ls-extras" }, bar));
  }

  addExtras(side) {
    this.zoomRange = null;
    if (this.picture.zoomable) {
      this.button(side, "out", "Zoom out");
      this.zoomRange = tag("input", {
        type: "range", min: 0, max: 4, step: 0.25, value: 0, class: "ls-zoom", "aria-label": "Zoom",
      }, side);
      this.zoomRange.addEventListener("input", () => this.zoom(0));
      this.button(side, "in", "Zoom in");
    }
    for (const { key, name, on } of this.picture.switches) {
      const label = tag("label", { class: "ls-switch" }, side);
      const box = tag("input", { type: "checkbox", name: key }, label);
      box.checked = on;
      label.append(name);
      box.addEventListener("change", () => { this.picture.flip(key, box.checked); this.show(); });
    }
  }

  button(parent, icon, name) {
    const node = tag("button", {
      type: "button", title: name, "aria-label": name, class: `ls-${icon}`,
    }, parent);
    node.innerHTML = `<svg viewBox="0 0 18 18" aria-hidden="true"><path d="${ICONS[icon]}"/></svg>`;
    node.addEventListener("click", () => this.act(icon));
    return node;
  }

  act(action) {
    if (action === "play") { if (this.playing) this.stop(); else this.play(); return; }
    if (action === "in" || action === "out") { this.zoom(action === "in" ? 0.5 : -0.5); return; }
    this.stop();
    this.go({ back: this.step - 1, forward: this.step + 1, first: 0, final: this.last }[action]);
  }

  key(event) {
    const action = KEYS[event.key];
    if (!action || ownKey(event.target, event.key)) return;
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.act(action);
  }

  point(event) {
    const clock = this.picture.at(event);
    if (clock === null) return;
    this.stop();
    this.goClock(clock, false);
  }

  show(moving = false) {
    const { data, step, clock } = this, [time, sentence] = data.steps[step];
    let first = step;
    while (moving && data.steps[first - 1]?.[0] === time) first--;
    const text = first < step ?
      `Steps ${first} to ${step} of ${this.last}, all at this moment; the last: ${sentence}` :
      this.last ? `Step ${step} of ${this.last}: ${sentence}` : sentence;
    this.picture.draw(clock, step, moving);
    this.time.textContent = [clock, data.clock.end].map((s) => timeText(s, data.clock)).join(" / ");
    this.scrub.value = step;
    if (this.say.textContent === text) return;
    this.say.textContent = text;
    this.scrub.setAttribute("aria-valuetext", sentence);
  }

  go(step) {
    this.step = Math.max(0, Math.min(this.last, step));
    this.clock = this.data.steps[this.step][0];
    this.show();
    this.save();
  }

  goClock(clock, moving) {
    this.clock = Math.max(0, Math.min(this.data.clock.end, clock));
    this.step = stepAt(this.data.steps, this.clock);
    this.show(moving);
    this.save();
  }

  save() {  // the first change at once, then at most four a second, and always the last one
    const rest = SAVE_EVERY - (performance.now() - this.saved);
    if (rest > 0) {
      this.timer ||= setTimeout(() => { this.timer = 0; this.save(); }, rest);
      return;
    }
    this.saved = performance.now();
    if (this.model.get("step") === this.step) return;
    this.model.set("step", this.step);
    this.model.save_changes();
  }

  follow() {  // Python has set the step (or this is the echo of our own)
    const step = this.model.get("step");
    if (step === this.step || this.playing || this.timer) return;
    this.go(step);
  }

  play() {
    if (this.step >= this.last) this.go(0);
    this.face("pause", "Pause");
    this.say.setAttribute("aria-live", "off");  // a screen reader cannot follow a film
    this.before = performance.now();
    this.playing = requestAnimationFrame((now) => this.frame(now));
  }

  stop() {
    if (!this.playing) return;
    cancelAnimationFrame(this.playing);
    this.playing = 0;
    this.face("play", "Play");
    this.say.setAttribute("aria-live", "polite");
  }

  frame(now) {
    if (!this.root.isConnected) { this.stop(); return; }
    const speed = Number(this.speed.value), passed = Math.max(0, now - this.before) / 1000;
    if (this.reduced.matches) {  // no movement: one event after the other
      if (passed >= 1 / speed) { this.before = now; this.go(this.step + 1); }
    } else {  // at 1x about a third of a second per event, but 6 to 30 seconds for the whole
      const whole = Math.max(6, Math.min(30, this.last * 0.35));
      this.before = now;
      this.goClock(this.clock + passed / whole * speed * this.data.clock.end, true);
    }
    if (this.step >= this.last) { this.stop(); this.go(this.last); return; }
    this.playing = requestAnimationFrame((next) => this.frame(next));
  }

  face(icon, name) {
    this.playButton.querySelector("path").setAttribute("d", ICONS[icon]);
    this.playButton.setAttribute("aria-label", name);
    this.playButton.title = name;
  }

  zoom(change) {
    if (!this.zoomRange) return;
    this.zoomRange.value = Number(this.zoomRange.value) + change;
    this.picture.zoom(2 ** Number(this.zoomRange.value));
    this.show();
  }

  fail() {  // what a control has run into; the picture is then that of the settings before
    this.error.textContent = this.model.get("error") || "";
    this.root.classList.toggle("ls-stale", Boolean(this.model.get("stale")));
  }

  close() {  // the data changes, or the view goes away
    clearTimeout(this.timer);
    this.timer = 0;
    if (this.picture) { this.stop(); this.picture.end(); }
  }

  end() {
    for (const [event, call] of Object.entries(this.heard)) this.model.off(event, call);
    this.close();
  }
}

/* The widget that plays the pictures that `engine` makes of its data. */
function playing(engine) {
  return { render({ model, el }) {
    const player = new Player(el, model, engine);
    return () => player.end();
  } };
}
