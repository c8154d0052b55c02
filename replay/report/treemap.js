// The radix tree as bars: from left to right tokens of a path, below each other the paths that branch.

const MOST_HIGH = 6000;

class TreeMap {
  constructor(box, choose) {
    Object.assign(this, { choose, spots: [], spot: 0 });
    this.canvas = el("canvas", { tabindex: "0", role: "application",
      "aria-label": "Radix tree: left to the parent, right to the first child, up and down, Enter chooses" });
    this.under = el("p", { class: "soft", role: "status" }, "\u00a0");
    this.scale = el("div", { class: "axis" });
    this.box = el("div", { class: "mapbox" }, this.canvas);
    this.note = el("p", { class: "note", hidden: "" });
    box.replaceChildren(this.note, this.box, this.scale, this.under);
    this.canvas.addEventListener("click", event => this.pick(this.at(event)));
    this.canvas.addEventListener("mousemove", event => this.tell(this.at(event)));
    this.canvas.addEventListener("keydown", event => this.key(event));
    this.canvas.addEventListener("focus", () => this.redraw());
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    return this.spots.findIndex(each => x >= each.x && x < each.x + each.wide && y >= each.y && y < each.y + each.high);
  }

  key(event) {
    const here = this.spots[this.spot];
    let next = this.spot;
    if (!here) return;
    if (event.key === "ArrowLeft") next = this.spots.findIndex(each => each.number === here.parent);
    else if (event.key === "ArrowRight") next = this.spots.findIndex(each => each.parent === here.number);
    else if (event.key === "ArrowUp") next = this.spot - 1;
    else if (event.key === "ArrowDown") next = this.spot + 1;
    else if (event.key === "Enter" || event.key === " ") this.pick(this.spot);
    else return;
    event.preventDefault();
    event.stopPropagation();
    if (next >= 0 && next < this.spots.length) this.spot = next;
    this.tell(this.spot);
    this.redraw();
  }

  pick(place) {
    if (place < 0 || !this.spots[place]) return;
    this.spot = place;
    this.choose({ type: "node", number: this.spots[place].number });
  }

  tell(place) {
    const spot = this.spots[place];
    if (spot) this.under.textContent = nodeText(this.track, spot.number, spot.node);
  }

  redraw() { if (this.tables) this.draw(this.track, this.tables, this.chosen); }

  draw(track, tables, chosen) {
    const held = this.spots[this.spot]?.number;
    Object.assign(this, { track, tables, chosen });
    this.box.hidden = this.scale.hidden = this.under.hidden = tables.unknown !== null;
    this.note.hidden = tables.unknown === null;
    if (tables.unknown) {
      this.spots = [];
      this.note.textContent = `The tree is ${notKnown(tables.unknown.lost)}. A node can be found by its number, with what events say of it.`;
      return;
    }
    const width = this.box.clientWidth - 2;
    if (width < 1) return;
    const rows = layout(track, tables.nodes);
    const high = Math.max(0.05, Math.min(18, MOST_HIGH / Math.max(1, rows.leaves), Math.max(3, Math.floor(340 / Math.max(1, rows.leaves)))));
    const height = Math.max(24, Math.ceil(rows.leaves * high));
    const pen = canvasOf(this.canvas, width, height);
    const across = width / Math.max(1, rows.end), windowed = track.head.config.swa_pages > 0;
    const colours = Object.fromEntries(["protected", "evictable", "in_flight", "tomb", "ink", "ground", "alarm", "accent"].map(name => [name, colour(name)]));
    this.spots = rows.nodes.map(({ number, node, row, leaves }) => ({
      number, node, parent: node[track.node.parent], x: (node[track.node.end] - node[track.node.pages]) * across, y: row * high,
      wide: Math.max(1, node[track.node.pages] * across), high: leaves * high,
    }));
    this.spot = Math.max(0, this.spots.findIndex(each => each.number === held));
    const small = { x: -1, y: -1 };
    for (const spot of this.spots) {
      const x = Math.round(spot.x), y = Math.round(spot.y);
      if (spot.wide < 1.5 && spot.high < 1.5) {
        if (x === small.x && y === small.y) continue;
        Object.assign(small, { x, y });
      }
      paint(pen, track, spot, colours, windowed);
    }
    pen.lineWidth = 2;
    for (const spot of this.spots) {
      if (!chosen(spot.number)) continue;
      pen.strokeStyle = colours.alarm;
      pen.strokeRect(spot.x + 1, spot.y + 1, Math.max(2, spot.wide - 2), Math.max(2, spot.high - 2));
    }
    const here = this.spots[this.spot];
    if (here && document.activeElement === this.canvas) {
      pen.strokeStyle = colours.accent;
      pen.lineWidth = 3;
      pen.strokeRect(here.x + 1, here.y + 1, Math.max(2, here.wide - 2), Math.max(2, here.high - 2));
    }
    const size = track.head.config.page_size || 1;
    this.scale.replaceChildren(el("span", {}, "token 0"),
      el("span", {}, `${many(this.spots.length, "node")}, ${many(rows.leaves, "path")}`), el("span", {}, `token ${count(rows.end * size)}`));
  }
}

function paint(pen, track, spot, colours, windowed) {
  const at = track.node, node = spot.node, gapX = spot.wide > 3 ? 1 : 0, gapY = spot.high > 3 ? 1 : 0;
  const wide = spot.wide - gapX, high = spot.high - gapY;
  if (!node[at.full]) pen.fillStyle = colours.in_flight;
  else if (node[at.holds] > 0) pen.fillStyle = colours.protected;
  else pen.fillStyle = colours.evictable;
  if (windowed && !node[at.swa] && node[at.full]) {
    pen.globalAlpha = node[at.holds] > 0 ? 0.45 : 0.16;
    pen.fillRect(spot.x, spot.y, wide, high);
    pen.globalAlpha = 1;
    if (high > 5 && wide > 5) {
      pen.setLineDash([3, 2]);
      pen.lineWidth = 1;
      pen.strokeStyle = colours.tomb;
      pen.strokeRect(spot.x + 0.5, spot.y + 0.5, wide - 1, high - 1);
      pen.setLineDash([]);
    }
  } else pen.fillRect(spot.x, spot.y, wide, high);
  const label = String(spot.number);
  if (high >= 11 && wide > 8 + 7 * label.length) {
    pen.fillStyle = windowed && !node[at.swa] ? colours.ink : "#fff";
    if (node[at.holds] <= 0) pen.fillStyle = windowed && !node[at.swa] ? colours.ink : "#06263a";
    pen.font = "11px ui-monospace, monospace";
    pen.fillText(label, spot.x + 4, spot.y + Math.min(high / 2 + 4, 14));
  }
}

// Rows by leaf, in the order of numbers; without recursion, since a path may be long.
function layout(track, nodes) {
  const at = track.node, children = new Map();
  let end = 0;
  for (const number of Float64Array.from(nodes.keys()).sort()) {
    const node = nodes.get(number);
    if (node[at.parent] < 0) continue;
    if (!children.has(node[at.parent])) children.set(node[at.parent], []);
    children.get(node[at.parent]).push(number);
    end = Math.max(end, node[at.end]);
  }
  const found = [], stack = [...(children.get(0) || [])].reverse(), seen = new Set();
  let row = 0;
  while (stack.length) {
    const number = stack.pop(), below = children.get(number) || [];
    if (seen.has(number)) continue;
    seen.add(number);
    found.push({ number, node: nodes.get(number), row, leaves: 0 });
    if (!below.length) row += 1;
    for (let each = below.length - 1; each >= 0; each--) stack.push(below[each]);
  }
  const places = new Map(found.map((each, place) => [each.number, place]));
  for (let place = found.length - 1; place >= 0; place--) {
    const each = found[place], above = found[places.get(each.node[at.parent])];
    each.leaves ||= 1;
    if (above) above.leaves += each.leaves;
  }
  return { nodes: found, leaves: row, end };
}

function nodeText(track, number, node) {
  const at = track.node, size = track.head.config.page_size || 1;
  const start = (node[at.end] - node[at.pages]) * size;
  const state = !node[at.full] ? "copy on the host alone" : track.head.config.swa_pages > 0 && !node[at.swa] ? "tombstone" : "live";
  return `node ${number}: tokens ${count(start)} to ${count(node[at.end] * size)}, ${state}, ${node[at.holds] > 0 ? "locked" : "not locked"}`;
}
