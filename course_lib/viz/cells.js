/* Cells that travel: places (ranks) with slots, cells in the slots, cells on their way between them.
The data's `cells` are described in cells.py. The picture knows no physics: at a time it shows what
the changes up to then say, and the flights that have started and not ended. */

const HEAD = 38, METER = 22, PAD = 8, SIDE = 78;

class Cells {
  constructor(data) {
    Object.assign(this, { c: data.cells, kinds: data.theme, width: 0, before: Infinity });
    this.ring = this.c.arrange === "ring";
    this.node = tag("div", { class: "ls-cells" });
    this.svg = svg("svg", { role: "img", "aria-label": data.title }, this.node);
    this.fills = { ...fillsOf(data.theme, this.svg), ...fillsOf(this.c.theme, this.svg) };
    for (const layer of ["still", "held", "trails", "air"]) {
      this[layer] = svg("g", { class: `ls-${layer}` }, this.svg);
    }
    this.node.append(legend(this.c.theme, this.fills).list);
    if (this.c.code) this.line = tag("code", { class: "ls-code" }, this.node);
    this.slots = this.c.lanes.flatMap((lane, l) => lane.slots.map((name, i) => ({
      name, l, row: Math.floor(i / lane.across), column: i % lane.across,
      share: lane.sizes[i] / Math.max(...lane.sizes, 1e-9),
    })));
    this.zoomable = false;
    this.switches = this.c.ring ? [{ key: "ring", name: "as a ring", on: this.ring }] : [];
    this.watcher = new ResizeObserver(() => {
      if (Math.round(this.node.clientWidth) === this.width) return;
      this.redraw();
      this.resized?.();
    });
    this.watcher.observe(this.node);
  }

  /* ---- places: where everything stands ---- */

  measure() {
    const rows = this.c.lanes.map((lane) => Math.ceil(lane.slots.length / lane.across));
    const count = rows.reduce((a, b) => a + b, 0), small = this.ring && this.c.places.length > 4;
    this.row = count <= 2 && !small ? 34 : count <= 6 && !small ? 26 : count <= 16 ? 18 : 12;
    const gap = this.row > 20 ? 5 : 3;
    let y = HEAD;
    this.tops = this.c.lanes.map((lane, l) => {
      const top = y += lane.name ? 18 : 0;
      y += rows[l] * (this.row + gap) + 4;
      return { top, step: this.row + gap };
    });
    this.meterTop = y + 2;
    this.tall = y + this.c.meters.length * METER + PAD;
    if (this.ring) this.round(); else this.abreast();
  }

  abreast() {
    const count = this.c.places.length, pitch = (this.width - SIDE) / count;
    this.wide = Math.min(280, pitch - (pitch > 100 ? 16 : 6));
    this.inset = 0;
    this.spots = this.c.places.map((_, p) => [SIDE + (p + 0.5) * pitch - this.wide / 2, 1]);
    this.height = this.tall + 4;
  }

  round() {  // an ellipse as wide as the page allows, as flat as the boxes allow
    const count = this.c.places.length, { width, tall } = this;
    this.inset = 52;
    this.wide = Math.min(230, (width - 40) / 3);
    const across = Math.min(width / 2 - this.wide / 2 - 2, 430), at = (down) =>
      this.c.places.map((_, p) => {
        const turn = 2 * Math.PI * p / count - Math.PI / 2;
        return [width / 2 + across * Math.cos(turn), down * (1 + Math.sin(turn))];
      });
    const clash = (a, b) => Math.abs(a[0] - b[0]) < this.wide + 14
      && Math.abs(a[1] - b[1]) < tall + 26;
    let down = tall / 4, found = at(down);
    while (down < 2000 && found.some((a, i) => found.slice(0, i).some((b) => clash(a, b)))) {
      found = at(down += 4);
    }
    this.spots = found.map(([x, y]) => [x - this.wide / 2, y + 1]);
    this.height = Math.max(...found.map((spot) => spot[1])) + tall + 4;
  }

  box(place, slot) {
    const { l, row, column, share } = this.slots[slot], { top, step } = this.tops[l];
    const [x, y] = this.spots[place], room = this.wide - 2 * PAD - this.inset;
    const across = this.c.lanes[l].across, each = room / across;
    return {
      x: x + PAD + this.inset + column * each, y: y + top + row * step,
      width: (each - (across > 1 ? 2 : 0)) * Math.max(0.3, share), height: this.row,
    };
  }

  /* ---- what changes only with size and switches ---- */

  redraw() {
    this.width = Math.round(this.node.clientWidth);
    if (!this.width) return;
    this.measure();
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.setAttribute("height", this.height);
    for (const layer of [this.still, this.held, this.trails, this.air]) layer.replaceChildren();
    Object.assign(this, { before: Infinity, live: [] });
    this.shown = this.c.places.map(() => this.slots.map(() => null));
    this.c.places.forEach((place, p) => this.drawPlace(place, p));
    if (!this.ring) this.drawNames(SIDE - 6, "end", 0);
  }

  drawPlace(place, p) {
    const [x, y] = this.spots[p], size = this.wide < 90 ? 11 : 13;
    svg("rect", { x, y, width: this.wide, height: this.tall, rx: 8, class: "ls-place" }, this.still);
    place.said = place.look = null;
    place.band = svg("rect", {
      x: x + 1, y: y + 1, width: this.wide - 2, height: HEAD - 8, rx: 7, fill: "none",
    }, this.still);
    svg("text", { x: x + PAD, y: y + (this.wide < 150 ? 14 : 20), class: "ls-panel",
      "font-size": size }, this.still, place.name);
    place.state = svg("text", this.wide < 150
      ? { x: x + PAD, y: y + 27, class: "ls-value", "font-size": 11 }
      : { x: x + this.wide - PAD, y: y + 20, class: "ls-value", "font-size": 12,
          "text-anchor": "end" }, this.still);
    if (this.ring) this.drawNames(x + PAD, "start", y);
    this.slots.forEach((slot, s) => {
      svg("rect", { ...this.box(p, s), rx: 4, class: "ls-slot" }, this.still);
    });
    place.bars = this.c.meters.map((meter, m) => this.drawMeter(meter, x + PAD,
      y + this.meterTop + m * METER));
  }

  drawNames(x, anchor, y) {
    if (this.wide < 80) this.c.meters.forEach((meter, m) => svg("text", { x, class: "ls-value",
      y: y + this.meterTop + m * METER + 9, "font-size": 11, "text-anchor": anchor }, this.still,
      meter.name));
    this.c.lanes.forEach((lane, l) => {
      const { top, step } = this.tops[l], size = this.row < 16 ? 10 : 12;
      if (lane.name) {
        svg("text", { x, y: y + top - 5, class: "ls-value", "font-size": 11, "text-anchor": anchor },
          this.still, lane.name);
      }
      for (let i = 0; i < lane.slots.length; i += lane.across) {
        svg("text", { x, y: y + top + i / lane.across * step + this.row / 2 + size * 0.36,
          class: "ls-name", "font-size": size, "text-anchor": anchor }, this.still, lane.slots[i]);
      }
    });
  }

  drawMeter(meter, x, y) {
    const room = this.wide - 2 * PAD;
    svg("rect", { x, y: y + 13, width: room, height: 5, rx: 2.5, class: "ls-track" }, this.still);
    const text = svg("text", { x, y: y + 9, class: "ls-value", "font-size": 11 }, this.still);
    return { text, x, y: y + 13, room, bars: {} };
  }

  /* A cell: plain, or one stripe per rank whose contribution is in it. */
  drawCell({ x, y, width, height }, look, parent) {
    const [label, kind, of, has] = this.c.looks[look], m = this.c.theme[kind];
    const group = svg("g", {}, parent), size = Math.min(13, height - 4);
    const stripe = of ? width / of : width, parts = of ? has : [0], gap = of ? 0.75 : 0;
    const inner = kind === "whole" ? 0 : gap;
    const d = parts.map((k) => `M${x + k * stripe + inner} ${y}h${stripe - 2 * inner}v${height}`
      + `h${2 * inner - stripe}z`).join("");
    svg("rect", { x, y, width, height, rx: 4, class: "ls-cell" }, group);
    svg("path", { d, fill: this.fills[kind] }, group);
    const text = (words, at) => svg("text", {
      x: at, y: y + height / 2 + size * 0.36, "text-anchor": "middle", "font-size": size,
      fill: m.ink, class: m.hatch ? "ls-quiet" : "ls-label",
    }, group, words);
    if (label) { if (size > 7) text(label, x + width / 2); return group; }
    if (stripe >= 8 && size > 7) for (const k of parts) text(String(k), x + (k + 0.5) * stripe);
    else if (kind === "whole" && size > 7) text(m.letter, x + width / 2);
    return group;
  }

  /* ---- what the clock moves ---- */

  draw(clock, step) {
    if (!this.width) return;
    if (this.line) this.line.textContent = this.c.code[step];
    const begun = step > 0 || clock > 0;
    if (clock < this.before) this.restart();
    this.before = clock;
    for (; this.next < this.c.changes.length && this.c.changes[this.next][0] <= clock; this.next++) {
      const [, place, slot, look] = this.c.changes[this.next];
      this.shown[place][slot]?.remove();
      this.shown[place][slot] = look < 0 ? null
        : this.drawCell(this.box(place, slot), look, this.held);
    }
    if (begun) this.fly(clock);
    this.c.places.forEach((place, p) => this.tell(place, p, begun ? clock : -1));
  }

  restart() {
    for (const layer of [this.held, this.trails, this.air]) layer.replaceChildren();
    for (const slots of this.shown) slots.fill(null);
    Object.assign(this, { next: 0, launched: 0, live: [] });
  }

  fly(clock) {  // touches only what has started or ended since the last call
    const { flights } = this.c;
    for (; this.launched < flights.length && flights[this.launched][0] <= clock; this.launched++) {
      if (flights[this.launched][1] > clock) this.live.push(this.launch(flights[this.launched]));
    }
    this.live = this.live.filter((one) => {
      const [start, end] = one.flight, part = (clock - start) / (end - start);
      if (part >= 1) { one.group.remove(); one.trail.remove(); return false; }
      const t = part * part * (3 - 2 * part), u = 1 - t;
      const x = 2 * u * t * one.bend[0] + t * t * one.way[0];
      const y = 2 * u * t * one.bend[1] + t * t * one.way[1];
      one.group.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
      return true;
    });
  }

  launch(flight) {
    const [, , place, slot, target, into, look] = flight;
    const a = this.box(place, slot), b = this.box(target, into);
    const way = [b.x - a.x, b.y - a.y], far = Math.abs(target - place) > 1 && !this.ring;
    const high = this.ring ? 0 : far ? Math.min(60, 14 + Math.abs(way[0]) / 12) : 8;
    const lift = Math.max(0, Math.min(high, (a.y + b.y) / 2 - 3));  // stay inside the picture
    const bend = [way[0] / 2, way[1] / 2 - lift * 2];
    const [mx, my] = [a.x + a.width / 2, a.y + a.height / 2], [tx, ty] = [mx + way[0], my + way[1]];
    const trail = svg("g", {}, this.trails), [, tip] = arrow([mx + bend[0], my + bend[1], tx, ty]);
    svg("path", { d: `M${mx} ${my}Q${mx + bend[0]} ${my + bend[1]} ${tx} ${ty}`,
      class: "ls-trail" }, trail);
    svg("path", { d: tip, class: "ls-aim" }, trail);
    const group = this.drawCell(a, look, this.air);
    svg("rect", { ...a, rx: 4, class: "ls-afloat" }, group);
    return { flight, way, bend, trail, group };
  }

  tell(place, p, clock) {
    const k = place.status.length && clock >= 0 ? stepAt(place.status, clock) : -1;
    const [, kind, words] = k < 0 || place.status[k][0] > clock ? [0, "", ""] : place.status[k];
    if (place.said !== words) place.state.textContent = place.said = words;
    const band = kind === "wait" ? this.fills.wait : kind ? "rgba(230, 159, 0, 0.22)" : "none";
    if (place.look !== band) place.band.setAttribute("fill", place.look = band);
    this.c.meters.forEach((meter, m) => this.fill(meter, meter.series[p], place.bars[m], clock));
  }

  fill(meter, series, bar, clock) {
    const k = series.length ? stepAt(series, Math.max(0, clock)) : -1, after = series[k + 1];
    const share = meter.smooth && after && after[0] > series[k][0]
      ? Math.max(0, clock - series[k][0]) / (after[0] - series[k][0]) : 0;
    let x = bar.x, total = 0;
    for (const kind of Object.keys(this.kinds)) {
      const now = k < 0 ? 0 : series[k][1][kind] || 0;
      const value = now + share * (((after || [0, {}])[1][kind] || 0) - now);
      total += now;
      if (!value && !bar.bars[kind]) continue;
      bar.bars[kind] ||= svg("rect", { y: bar.y, height: 5, fill: this.fills[kind] }, this.still);
      bar.bars[kind].setAttribute("x", x);
      bar.bars[kind].setAttribute("width", value / (meter.most || 1) * bar.room);
      x += value / (meter.most || 1) * bar.room;
    }
    const much = amount(total, meter.unit), words = this.wide < 80 ? much : `${meter.name} ${much}`;
    if (bar.said !== words) bar.text.textContent = bar.said = words;
  }

  /* ---- what the player asks for ---- */

  zoom() {}

  flip(key, on) {
    if (key !== "ring") return;
    this.ring = on;
    this.redraw();
  }

  at() { return null; }

  end() { this.watcher.disconnect(); }
}

/* Several pictures of the same data above each other, on one clock. */
class Stack {
  constructor(pictures) {
    this.pictures = pictures;
    this.node = tag("div", {});
    this.node.append(...pictures.map((one) => one.node));
    this.zoomable = pictures.some((one) => one.zoomable);
    this.switches = pictures.flatMap((one) => one.switches);
  }

  set resized(call) { for (const one of this.pictures) one.resized = call; }

  draw(clock, step, moving) { for (const one of this.pictures) one.draw(clock, step, moving); }

  zoom(factor) { for (const one of this.pictures) if (one.zoomable) one.zoom(factor); }

  flip(key, on) {
    for (const one of this.pictures) if (one.switches.some((s) => s.key === key)) one.flip(key, on);
  }

  at(event) {
    return this.pictures.reduce((found, one) => found ?? one.at(event), null);
  }

  end() { for (const one of this.pictures) one.end(); }
}
