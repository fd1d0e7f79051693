/* Rows over time: ranks and their streams as rows, what they do as bars, messages as arrows, memory
as strips. The data (made by rows.py; it carries everything, the page knows no physics), times in
seconds:

  { id, title, summary,                        id: of the static picture beside the widget
    clock: {end, scale, unit, digits},       prints as (seconds * scale).toFixed(digits) + unit
    look:  {row, gap, title, axis, strip, pad, text, room},            sizes in pixels
    theme: {kind: {name, colour, ink, letter, hatch, stroke}},         in legend order
    panels: [{                                 stacked, on one clock
      title,                                   "" for none
      rows:     [label],
      bars:     [[row, start, end, kind, label, part]],            part: 0 whole, 1 upper, 2 lower
      messages: [[source row, destination row, start, end]],
      strips:   [{row, name, unit, series: [[time, {kind: amount}]],     under the row, on demand,
                  top, line}]                                          by a switch of that name
    }],                                        (top: its scale, line: a limit; both may be missing)
    notes: [sentence],                         below the legend; may be missing
    on: {messages, strips},                    the switches at first; may be missing
    steps: [[time, sentence, panel, [bars], [messages]]] }         sorted; what each one highlights

One SVG changes only with size, zoom and switches; the one above it has what the clock moves. */

class Rows {
  constructor(data) {
    Object.assign(this, { data, look: data.look, ends: data.clock.end || 1, width: 0, factor: 1 });
    const on = { messages: true, strips: false, ...data.on };
    Object.assign(this, { arrows: on.messages, strips: on.strips, shown: -1, values: [] });
    this.node = tag("div", { class: "ls-rows" });
    this.names = svg("svg", { class: "ls-names", "aria-hidden": true }, this.node);
    this.scroll = tag("div", { class: "ls-scroll" }, this.node);
    this.sheet = tag("div", { class: "ls-sheet" }, this.scroll);
    this.base = svg("svg", { role: "img", "aria-label": data.summary }, this.sheet);
    this.over = svg("svg", { class: "ls-over", "aria-hidden": true }, this.sheet);
    this.fills = fillsOf(data.theme, this.base);
    this.still = svg("g", {}, this.base);
    this.hint = svg("title", {}, this.base);
    this.future = svg("rect", { class: "ls-future", y: 0 }, this.over);
    this.flights = svg("g", { class: "ls-flights" }, this.over);
    this.marks = svg("g", {}, this.over);
    this.hand = svg("path", { class: "ls-hand" }, this.over);
    this.letters = Math.max(...data.panels.flatMap((p) => p.rows.map((name) => name.length)));
    this.gutter = Math.min(190, Math.max(76, 20 + 7.4 * this.letters));
    this.messages = data.panels.flatMap((p, panel) => p.messages.map((m) => ({ panel, m })));
    this.messages.sort((a, b) => a.m[2] - b.m[2]);
    this.inBars = new Set(["idle", ...data.panels.flatMap((p) => p.bars.map((bar) => bar[3]))]);
    this.zoomable = true;
    this.switches = [{ key: "messages", name: "messages", on: this.arrows }];
    const strip = data.panels.flatMap((panel) => panel.strips)[0];
    if (strip) this.switches.push({ key: "strips", name: strip.name, on: this.strips });
    this.legend = legend(data.theme, this.fills);
    this.node.append(this.legend.list);
    const notes = tag("div", { class: "ls-notes" }, this.node);
    for (const note of data.notes || []) tag("p", {}, notes, note);
    this.tellOnHover();
    this.watcher = new ResizeObserver(() => {
      if (Math.round(this.scroll.clientWidth * this.factor) === this.width) return;
      this.redraw();
      this.resized?.();
    });
    this.watcher.observe(this.scroll);
  }

  /* ---- places ---- */

  x(seconds) {
    const pad = this.look.pad;
    return pad + seconds / this.ends * (this.width - 2 * pad);
  }

  box(panel, [row, start, end, , , part]) {
    const half = this.look.row / 2;
    return {
      x: this.x(start), y: this.place.panels[panel].rows[row] + (part === 2 ? half + 0.5 : 0),
      width: Math.max(0.6, this.x(end) - this.x(start)), height: part ? half - 0.5 : this.look.row,
    };
  }

  way(panel, [source, destination, start, end]) {
    const rows = this.place.panels[panel].rows, down = destination > source, row = this.look.row;
    return [this.x(start), rows[source] + (down ? row : 0),
      this.x(end), rows[destination] + (down ? 0 : row)];
  }

  /* ---- what changes only with size, zoom and switches ---- */

  redraw() {
    const room = this.scroll.clientWidth;
    if (!room) return;
    this.width = Math.round(room * this.factor);
    this.place = layout(this.data, this.strips);
    const height = this.place.bottom + this.look.axis;
    for (const one of [this.base, this.over, this.names]) {
      const width = one === this.names ? this.gutter : this.width;
      one.setAttribute("viewBox", `0 0 ${width} ${height}`);
      one.setAttribute("height", height);
    }
    this.names.setAttribute("width", this.gutter);
    this.sheet.style.width = `${this.factor * 100}%`;
    this.still.replaceChildren();
    this.names.replaceChildren();
    this.flights.replaceChildren();
    Object.assign(this, { shown: -1, live: [], next: 0, before: 0, values: [] });
    this.drawAxis();
    this.data.panels.forEach((panel, i) => this.drawPanel(panel, i));
    if (this.arrows) this.drawArrows();
    for (const [kind, entry] of Object.entries(this.legend.entries)) {
      entry.hidden = !this.strips && !this.inBars.has(kind);
    }
  }

  drawAxis() {
    const { scale, unit } = this.data.clock, whole = this.ends * scale;
    const step = tickStep(whole, this.width / 90), y = this.place.bottom - 4;
    for (let k = 0; k * step <= whole * 1.0001; k++) {
      const at = this.x(k * step / scale), last = (k + 1) * step > whole * 1.0001;
      svg("path", { d: `M${at} 0V${y}`, class: "ls-grid" }, this.still);
      svg("text", {
        x: at, y: y + 18, class: "ls-tick", "font-size": this.look.text - 1,
        "text-anchor": k === 0 ? "start" : at > this.width - 40 ? "end" : "middle",
      }, this.still, shortNumber(k * step) + (last ? ` ${unit}` : ""));
    }
  }

  drawPanel(panel, i) {
    const { top, rows } = this.place.panels[i], size = this.look.text;
    if (panel.title) {
      const place = { x: 0, y: top + 16, class: "ls-panel", "font-size": size };
      svg("text", place, this.names, panel.title);
    }
    panel.rows.forEach((name, r) => {
      svg("text", {
        x: this.gutter - 4, y: rows[r] + this.look.row / 2 + 4, "text-anchor": "end",
        class: "ls-name", "font-size": size,
      }, this.names, name);
      svg("rect", {
        x: this.x(0), y: rows[r], width: this.x(this.ends) - this.x(0),
        height: this.look.row, class: "ls-track",
      }, this.still);
    });
    panel.bars.forEach((bar, j) => this.drawBar(this.box(i, bar), bar, `${i}.${j}`));
    if (this.strips) for (const strip of panel.strips) this.drawStrip(strip, rows[strip.row]);
  }

  drawBar(box, [, , , kind, label, part], key) {
    const m = this.data.theme[kind], size = this.look.text - (part ? 1 : 0);
    const inset = Math.min(0.75, box.width / 4);
    svg("rect", {
      ...box, x: box.x + inset, width: box.width - 2 * inset, rx: Math.min(3, box.width / 4),
      fill: this.fills[kind], "data-bar": key,
    }, this.still);
    const texts = [label, kind === "wait" ? "wait" : "", m.letter];
    const text = fitting(texts, box.width, size, this.look.room);
    if (!text) return;
    svg("text", {
      x: box.x + box.width / 2, y: box.y + box.height / 2 + size * 0.36, "text-anchor": "middle",
      class: m.hatch ? "ls-label ls-quiet" : "ls-label", fill: m.ink, "font-size": size,
    }, this.still, text);
  }

  drawStrip(strip, top) {
    const bottom = top + this.look.row + 4 + this.look.strip, { series } = strip;
    const totals = series.map((entry) => Object.values(entry[1]).reduce((a, b) => a + b, 0));
    const most = strip.top || Math.max(...totals, 1e-30), scale = (this.look.strip - 2) / most;
    const below = series.map(() => 0);
    const floor = `M${this.x(0)} ${bottom}H${this.x(this.ends)}`;
    svg("path", { d: floor, class: "ls-grid" }, this.still);
    for (const kind of Object.keys(this.data.theme)) {
      if (!series.some((entry) => entry[1][kind])) continue;
      const up = [], down = [];
      series.forEach(([start, held], k) => {
        const a = this.x(start), b = this.x(k + 1 < series.length ? series[k + 1][0] : this.ends);
        const low = bottom - below[k] * scale, high = low - (held[kind] || 0) * scale;
        below[k] += held[kind] || 0;
        up.push(`${a} ${high}L${b} ${high}`);
        down.unshift(`${b} ${low}L${a} ${low}`);
      });
      svg("path", { d: `M${up.join("L")}L${down.join("L")}z`, fill: this.fills[kind] }, this.still);
    }
    if (strip.line) {
      const y = bottom - strip.line * scale, line = `M${this.x(0)} ${y}H${this.x(this.ends)}`;
      svg("path", { d: line, class: "ls-limit" }, this.still);
    }
    const label = svg("text", {
      x: this.gutter - 4, y: bottom - this.look.strip / 2 + 4, "text-anchor": "end",
      class: "ls-value", "font-size": this.look.text - 1,
    }, this.names);
    this.values.push({ strip, totals, label, seen: -2 });
  }

  drawArrows() {
    const pieces = this.messages.map(({ panel, m }) => arrow(this.way(panel, m)));
    const many = pieces.length > 400 ? "ls-arrows ls-many" : "ls-arrows";
    const layer = svg("g", { class: many }, this.still);
    svg("path", { d: pieces.map((piece) => piece[0]).join(""), class: "ls-line" }, layer);
    svg("path", { d: pieces.map((piece) => piece[1]).join(""), class: "ls-tip" }, layer);
  }

  /* ---- what the clock moves ---- */

  draw(clock, step, moving) {
    if (!this.place) return;
    const at = this.x(clock), bottom = this.place.bottom - 4, begun = step > 0 || clock > 0;
    this.over.classList.toggle("ls-begun", begun);  // until then nothing is dimmed
    this.future.setAttribute("x", at);
    this.future.setAttribute("width", Math.max(0, this.width - at));
    this.future.setAttribute("height", bottom);
    this.hand.setAttribute("d", `M${at} 0V${bottom}M${at - 5} ${bottom + 5}h10l-5 -8z`);
    if (step !== this.shown) this.mark(step);
    if (this.arrows && begun) this.fly(clock, moving); else this.land();
    for (const value of this.values) this.tell(value, clock);
    const left = this.scroll.scrollLeft, room = this.scroll.clientWidth;
    if (this.factor > 1 && (at < left + 0.08 * room || at > left + 0.85 * room)) {
      this.scroll.scrollLeft = at - 0.3 * room;
    }
  }

  mark(step) {
    const [, , panel, bars, messages] = this.data.steps[step], own = this.data.panels[panel];
    this.shown = step;
    this.marks.replaceChildren();
    for (const bar of bars) {
      svg("rect", { ...this.box(panel, own.bars[bar]), rx: 3, class: "ls-now" }, this.marks);
    }
    if (!this.arrows) return;
    for (const message of messages) {
      const [line, head] = arrow(this.way(panel, own.messages[message]));
      svg("path", { d: line + head, class: "ls-now" }, this.marks);
    }
  }

  fly(clock, moving) {  // touches only messages that have started or ended since the last call
    if (clock < this.before) this.land();
    this.before = clock;
    for (; this.next < this.messages.length; this.next++) {
      const { panel, m } = this.messages[this.next];
      if (m[2] > clock) break;
      if (m[3] <= clock || this.live.length >= 300) continue;
      const way = this.way(panel, m), group = svg("g", {}, this.flights), [line, head] = arrow(way);
      svg("path", { d: line, class: "ls-line" }, group);
      svg("path", { d: head, class: "ls-tip" }, group);
      this.live.push({ m, way, group, dot: svg("circle", { r: 4.5 }, group) });
    }
    this.live = this.live.filter(({ m, way: [x1, y1, x2, y2], group, dot }) => {
      const done = (clock - m[2]) / (m[3] - m[2]);
      if (done >= 1) { group.remove(); return false; }
      dot.setAttribute("cx", x1 + done * (x2 - x1));
      dot.setAttribute("cy", y1 + done * (y2 - y1));
      dot.setAttribute("r", moving ? 4.5 : 3.5);
      return true;
    });
  }

  land() {
    if (!this.next) return;
    this.flights.replaceChildren();
    Object.assign(this, { live: [], next: 0 });
  }

  tell(value, clock) {
    const { series, unit } = value.strip, k = series.length ? stepAt(series, clock) : -1;
    if (k === value.seen) return;
    value.seen = k;
    value.label.textContent = k < 0 || series[k][0] > clock ? "" : amount(value.totals[k], unit);
  }

  tellOnHover() {
    const sentences = new Map();
    for (const [, sentence, panel, bars] of this.data.steps) {
      for (const key of bars.map((bar) => `${panel}.${bar}`)) {
        if (!sentences.has(key)) sentences.set(key, sentence);  // a later step may point back at it
      }
    }
    this.base.addEventListener("pointerover", (event) => {
      this.hint.textContent = sentences.get(event.target.dataset?.bar) || "";
    });
  }

  /* ---- what the player asks for ---- */

  zoom(factor) { this.factor = factor; this.redraw(); }

  flip(key, on) {
    if (key === "messages") this.arrows = on; else this.strips = on;
    this.redraw();
  }

  at(event) {
    if (!this.sheet.contains(event.target)) return null;
    const area = this.sheet.getBoundingClientRect(), pad = this.look.pad;
    const x = (event.clientX - area.left) / area.width * this.width;
    return (x - pad) / (this.width - 2 * pad) * this.ends;
  }

  end() { this.watcher.disconnect(); }
}
