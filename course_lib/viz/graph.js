/* A machine as boxes and wires. The wires that a message occupies light up, and keep count of what
they have carried. The data is described in graph.py; nothing here knows how long anything takes. */

const BASE = 960, THIN = 1.5, WIDE = 6, ASIDE = 3.4, MOST_DOTS = 64, LISTED = 4;
const ARROWS = ["→", "↓", "←", "↑"];

class Graph {
  constructor(data) {
    Object.assign(this, { g: data.graph, width: 0, before: Infinity, numbers: true });
    const plain = data.steps.length < 2;
    this.node = tag("div", { class: `ls-graph${plain ? " ls-plain" : ""}` });
    this.svg = svg("svg", { role: "img", "aria-label": data.summary }, this.node);
    for (const layer of ["wires", "ways", "boxes", "words", "dots"]) {
      this[layer] = svg("g", { class: `ls-${layer}` }, this.svg);
    }
    this.list = tag("div", { class: "ls-links", hidden: "" }, this.node);
    if (!plain) this.list.removeAttribute("hidden");
    const { list } = legend(plain ? {} : data.theme, fillsOf(data.theme, this.svg));
    for (const kind of this.g.kinds) tag("li", {}, list, kind);
    this.node.append(list);
    this.zoomable = false;
    const room = this.g.wires.some((wire) => wire.room > 30);
    this.switches = plain || !room ? [] : [{ key: "numbers", name: "bytes on wires", on: true }];
    this.watcher = new ResizeObserver(() => {
      if (Math.round(this.node.clientWidth) === this.width) return;
      this.redraw();
      this.resized?.();
    });
    this.watcher.observe(this.node);
  }

  /* ---- what changes only with the width ---- */

  redraw() {
    this.width = Math.round(this.node.clientWidth);
    if (!this.width) return;
    this.scale = this.width / BASE;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.g.height}`);
    this.svg.setAttribute("height", this.g.height);
    for (const layer of ["wires", "ways", "dots", "boxes", "words"]) this[layer].replaceChildren();
    this.boxOf = this.g.nodes.map((node) => this.drawBox(node));
    this.curves = this.g.wires.flatMap((wire) => [this.curve(wire, 0), this.curve(wire, 1)]);
    this.lines = [];
    this.labels = this.g.wires.map((wire, k) => this.drawWire(wire, k));
    this.before = Infinity;
  }

  drawBox({ names, x, y, w, h }) {
    const wide = w * this.scale, size = h > 18 ? 12 : 9;
    const rect = svg("rect", {
      x: x * this.scale - wide / 2, y: y - h / 2, width: wide, height: h, rx: 5, class: "ls-box",
    }, this.boxes);
    const name = names.find((text) => text.length * size * 0.58 + 4 < wide);
    if (name) {
      svg("text", { x: x * this.scale, y: y + size * 0.36, class: "ls-name", "font-size": size,
        "text-anchor": "middle" }, this.boxes, name);
    }
    return rect;
  }

  /* Points of one direction of a wire: scaled to the page, and moved to its right-hand side. */
  curve(wire, way) {
    if (!wire.curve) return null;
    const s = this.scale, [x1, y1, cx, cy, x2, y2] = wire.curve, side = way ? -1 : 1;
    const length = Math.hypot((x2 - x1) * s, y2 - y1) || 1;
    const dx = side * (y1 - y2) / length * ASIDE, dy = side * (x2 - x1) * s / length * ASIDE;
    const moved = [[x1 * s + dx, y1 + dy], [cx * s + dx, cy + dy], [x2 * s + dx, y2 + dy]];
    return way ? moved.reverse() : moved;
  }

  drawWire(wire, k) {
    if (!wire.curve) { this.lines.push(null, null); return null; }
    const s = this.scale, [x1, y1, cx, cy, x2, y2] = wire.curve;
    svg("path", { d: `M${x1 * s} ${y1}Q${cx * s} ${cy} ${x2 * s} ${y2}`, class: "ls-wire" },
      this.wires);
    for (const way of [0, 1]) {
      const [a, b, c] = this.curves[2 * k + way];
      this.lines.push(svg("path", { d: `M${a}Q${b} ${c}`, class: "ls-way", "stroke-width": 0 },
        this.ways));
    }
    if (wire.room * s < 30) return null;
    const at = { x: wire.at[0] * s + (wire.flat ? 0 : 6), class: "ls-quiet", "font-size": 11,
      "text-anchor": wire.flat ? "middle" : "start" };
    return [0, 1].map(() => svg("text", at, this.words));
  }

  /* ---- what the clock moves ---- */

  draw(clock, step) {
    if (!this.width) return;
    const begun = step > 0;
    if (clock < this.before || !begun) this.restart();
    this.before = clock;
    if (begun) this.travel(clock);
    for (const d of this.touched) this.paint(d);
    if (this.touched.size) this.tell();
    this.touched.clear();
    this.move(clock);
  }

  restart() {
    const ways = this.g.ways.length;
    Object.assign(this, { next: 0, live: [], busy: new Array(ways).fill(0),
      carried: new Array(ways).fill(0), touched: new Set(this.g.ways.keys()) });
    this.dots.replaceChildren();
    this.dot = [];
  }

  travel(clock) {
    const { flights, paths } = this.g;
    for (; this.next < flights.length && flights[this.next][0] <= clock; this.next++) {
      const flight = flights[this.next];
      for (const d of paths[flight[3]]) { this.busy[d]++; this.touched.add(d); }
      this.live.push(flight);
    }
    this.live = this.live.filter(([, end, bytes, path]) => {
      if (end > clock) return true;
      for (const d of paths[path]) {
        this.busy[d]--;
        this.carried[d] += bytes;
        this.touched.add(d);
      }
      return false;
    });
  }

  paint(d) {
    const { carried, g, busy } = this, k = d >> 1, now = busy[d] > 0, line = this.lines[d];
    const width = carried[d] ? THIN + (WIDE - THIN) * carried[d] / g.most : 0;
    if (!line) {
      const both = busy[2 * k] + busy[2 * k + 1] > 0;
      this.boxOf[g.wires[k].ends[0]].classList.toggle("ls-busy", both);
      return;
    }
    line.setAttribute("stroke-width", now ? Math.max(3, width) : width);
    line.classList.toggle("ls-busy", now);
    if (this.labels[k]) this.label(k);
  }

  label(k) {
    const { room, at, flat } = this.g.wires[k], fits = (t) => t.length * 5.7 <= room * this.scale;
    const long = [2 * k, 2 * k + 1].filter((d) => this.carried[d])
      .map((d) => `${this.pointing(d)} ${amount(this.carried[d], "B")}`);
    const short = long.map((t) => t.replaceAll(" ", "").replace("iB", ""));
    const told = !this.numbers ? [] : long.every(fits) ? long : short.every(fits) ? short : [];
    this.labels[k].forEach((node, i) => {
      node.textContent = told[i] || "";
      node.setAttribute("y", at[1] + (flat ? [-7, 17][i] : 4 + 13 * (i - (told.length - 1) / 2)));
    });
  }

  pointing(d) {
    const [[x1, y1], , [x2, y2]] = this.curves[d], x = x2 - x1, y = y2 - y1;
    return ARROWS[Math.abs(x) > Math.abs(y) ? (x > 0 ? 0 : 2) : (y > 0 ? 1 : 3)];
  }

  /* The busiest directions so far, below the picture. */
  tell() {
    const { carried, busy, g } = this, most = g.most || 1;
    const order = [...carried.keys()].filter((d) => carried[d] || busy[d])
      .sort((a, b) => carried[b] - carried[a] || a - b).slice(0, LISTED);
    this.list.replaceChildren();
    tag("b", {}, this.list, order.length ? "Most bytes so far" : "Nothing sent yet");
    for (const d of order) {
      tag("span", {}, this.list, g.ways[d]);
      const bar = tag("i", { class: busy[d] ? "ls-busy" : "" }, this.list);
      bar.style.width = `${Math.max(0.5, 100 * carried[d] / most)}%`;
      tag("span", {}, this.list, amount(carried[d], "B"));
    }
  }

  /* A dot for each message on its way: it passes the wires of its path one after the other. */
  move(clock) {
    const some = this.g.slots ? [] : this.live.slice(0, MOST_DOTS);
    while (this.dot.length < some.length) this.dot.push(svg("circle", { r: 4.5 }, this.dots));
    while (this.dot.length > some.length) this.dot.pop().remove();
    some.forEach(([start, end, , path], i) => {
      const seen = this.g.paths[path].map((d) => this.curves[d]).filter((curve) => curve);
      this.dot[i].setAttribute("visibility", seen.length ? "visible" : "hidden");
      if (!seen.length) return;
      const along = Math.min(0.9999, (clock - start) / (end - start)) * seen.length;
      const t = along % 1, u = 1 - t, [a, b, c] = seen[Math.floor(along)];
      this.dot[i].setAttribute("cx", u * u * a[0] + 2 * u * t * b[0] + t * t * c[0]);
      this.dot[i].setAttribute("cy", u * u * a[1] + 2 * u * t * b[1] + t * t * c[1]);
    });
  }

  /* ---- what the player asks for ---- */

  zoom() {}

  flip(key, on) {
    this.numbers = on;
    this.labels.forEach((found, k) => { if (found) this.label(k); });
  }

  at() { return null; }

  end() { this.watcher.disconnect(); }
}
