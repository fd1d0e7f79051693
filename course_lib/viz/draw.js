/* Drawing helpers that the engines share: SVG nodes, hatches, arrows, ticks, legend, row layout. */

const NS = "http://www.w3.org/2000/svg";
// Ids must differ between all pictures of a page, and every widget loads a copy of this file.
let hatches = Math.floor(Math.random() * 1e12);

function svg(name, attributes, parent, text) {
  const node = document.createElementNS(NS, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (text !== undefined) node.textContent = text;
  parent?.appendChild(node);
  return node;
}

/* The fill of every meaning of a theme: its colour, or a hatch defined inside `root`. */
function fillsOf(theme, root) {
  const defs = svg("defs", {}, root), fills = {};
  for (const [kind, m] of Object.entries(theme)) {
    fills[kind] = m.colour;
    if (!m.hatch) continue;
    const id = `ls-hatch-${++hatches}`;
    const tile = svg("pattern", { id, width: 8, height: 8, patternUnits: "userSpaceOnUse" }, defs);
    svg("rect", { width: 8, height: 8, fill: m.colour }, tile);
    svg("path", { d: m.hatch, stroke: m.stroke, "stroke-width": 1.3, fill: "none" }, tile);
    fills[kind] = `url(#${id})`;
  }
  return fills;
}

/* Line and head of an arrow, as two pieces of path. */
function arrow([x1, y1, x2, y2]) {
  const length = Math.hypot(x2 - x1, y2 - y1) || 1;
  const ux = (x2 - x1) / length, uy = (y2 - y1) / length, f = (v) => v.toFixed(1);
  const bx = x2 - 7 * ux, by = y2 - 7 * uy;
  return [
    `M${f(x1)} ${f(y1)}L${f(bx)} ${f(by)}`,
    `M${f(x2)} ${f(y2)}L${f(bx - 3 * uy)} ${f(by + 3 * ux)}L${f(bx + 3 * uy)} ${f(by - 3 * ux)}z`,
  ];
}

/* A round step (1, 2 or 5 times a power of ten) that cuts `span` into at most `most` parts. */
function tickStep(span, most) {
  const raw = span / Math.max(1, most), power = 10 ** Math.floor(Math.log10(raw));
  return [1, 2, 5, 10].map((m) => m * power).find((step) => step >= raw * 0.999);
}

function shortNumber(value) {
  return String(Number(value.toPrecision(6)));
}

function amount(value, unit) {
  if (unit !== "B" || value < 10000) return `${shortNumber(value)} ${unit}`;
  const power = Math.min(4, Math.floor(Math.log2(value) / 10));
  return `${(value / 1024 ** power).toFixed(1)} ${["", "Ki", "Mi", "Gi", "Ti"][power]}B`;
}

/* The first of `texts` that fits into `width` pixels at a font size, with `room` to spare. */
function fitting(texts, width, size, room = 8) {
  return texts.find((text) => text && text.length * size * 0.6 + room < width);
}

/* The legend: the list, and its entry of every meaning. */
function legend(theme, fills) {
  const list = tag("ul", { class: "ls-legend", "aria-label": "Legend" }), entries = {};
  for (const [kind, m] of Object.entries(theme)) {
    const entry = tag("li", {}, list);
    const size = { viewBox: "0 0 18 14", width: 18, height: 14, "aria-hidden": true };
    const swatch = svg("svg", size, entry);
    svg("rect", { width: 18, height: 14, rx: 3, fill: fills[kind] }, swatch);
    if (m.letter && !m.hatch) {
      const place = { x: 9, y: 11, "text-anchor": "middle", "font-size": 10, fill: m.ink };
      svg("text", place, swatch, m.letter);
    }
    entry.append(m.name);
    entries[kind] = entry;
  }
  return { list, entries };
}

/* Tops of every panel, its rows and its strips, and the bottom of all, in pixels. */
function layout(data, strips) {
  const { row, gap, title, strip } = data.look;
  let y = 4;
  const panels = data.panels.map((panel) => {
    const top = y, tall = new Set(strips ? panel.strips.map((s) => s.row) : []);
    if (panel.title) y += title;
    const rows = panel.rows.map((_, i) => {
      const at = y;
      y += row + (tall.has(i) ? strip + 4 : 0) + gap;
      return at;
    });
    return { top, rows };
  });
  return { panels, bottom: y };
}
