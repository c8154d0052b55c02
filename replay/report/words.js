// How things are said and put into the page. Texts of a journal become text nodes, never markup.

function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "on") Object.entries(value).forEach(([event, react]) => element.addEventListener(event, react));
    else element.setAttribute(key, value);
  }
  element.append(...children);
  return element;
}

// A table as `grid.py` makes it; columns: name and class. A cell is a text or an element.
function grid(columns, rows) {
  const cell = (content, place) => el("td", { class: columns[place][1], "data-name": columns[place][0] }, content);
  return el("div", { class: "wide" }, el("table", {}, el("tr", {}, ...columns.map(([name, kind]) => el("th", { class: kind }, name))),
    ...rows.map(cells => el("tr", {}, ...cells.map(cell)))));
}

function svg(name, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// What changes how a line reads, or cannot be seen, is made visible.
function clean(text) { return String(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, "\ufffd"); }

function count(number) { return Number(number).toLocaleString("en"); }

function many(number, noun) { return `${count(number)} ${noun}${number === 1 ? "" : "s"}`; }

// Microseconds since 1970 in UTC or, in virtual time, seconds since a run began.
function timeText(micros) {
  if (micros < 1e14) return `${micros < 0 ? "" : "+"}${(micros / 1e6).toFixed(6)}s`;
  return new Date(micros / 1000).toISOString().replace("Z", "") + "Z";
}

const MOST_RUNS = 12;

// Pages as runs; where they are many, the first of them and the others behind a fold.
function runsIn(pages) {
  const runs = [];
  for (const page of [...pages].sort((one, other) => one - other)) {
    const last = runs[runs.length - 1];
    if (last && last[1] + 1 === page) last[1] = page;
    else runs.push([page, page]);
  }
  const told = some => some.map(([first, last]) => (first === last ? `${first}` : `${first}\u2013${last}`)).join(", ");
  if (!runs.length) return "none";
  return el("span", {}, told(runs.slice(0, MOST_RUNS)), ...more(runs.slice(MOST_RUNS), some => [told(some)]));
}

// What does not stand in a list at once: how many they are, and all of them where that is opened.
function more(left, shown, what = "more") {
  if (!left.length) return [];
  const fold = el("details", {}, el("summary", {}, `and ${count(left.length)} ${what}`));
  fold.addEventListener("toggle", () => fold.append(...shown(left)), { once: true });
  return [fold];
}

function folded(all, most) { return [...all.slice(0, most), ...more(all.slice(most), left => left)]; }

function notKnown(unknown) { return `not known behind event ${count(unknown)}\u2019s gap`; }

function ownerText(track, kind, holder) {
  if (kind === UNKNOWN) return notKnown(holder);
  if (kind === REQUEST) {
    const rid = clean(track.ridOf(holder));
    return holder ? `request ${holder}${rid ? ` (${rid})` : ""}` : "request (unbound)";
  }
  if (kind === TREE) return `node ${holder} of the tree`;
  if (kind === IN_FLIGHT) return `transfer ${holder}, in flight`;
  return track.head.kinds[kind] || `unknown (${kind})`;
}

function placeText(track, place) {
  const before = place ? track.seq[place - 1] : track.head.first - 1;
  if (track.tag[place]) return `event ${count(track.seq[place])}`;
  return `summary of events ${count(Math.min(before + 1, track.seq[place]))} to ${count(track.seq[place])}`;
}

function eventName(track, place) {
  return track.tag[place] ? track.head.events[track.tag[place]] : "many events";
}

function causeText(track, place) { return track.head.causes[track.cause[place]] || ""; }

function colour(name) { return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim(); }

// The class of an owner in the colours of the charts.
function accountOf(track, tables, pool, kind, holder) {
  if (kind === UNKNOWN) return "unknown";
  if (kind === TREE && tables.unknown) return "tree";
  if (kind !== TREE) return track.head.kinds[kind] || "reserved";
  const node = tables.nodes.get(holder);
  if (!node) return "evictable";
  const at = track.node;
  const locked = pool === SWA ? node[at.swa_locks] : pool === RECURRENT ? node[at.anchors] : node[at.holds];
  if (pool === HOST) return locked > 0 || node[at.full] ? "protected" : "evictable";
  return locked > 0 ? "protected" : "evictable";
}
