// The stretch around the moment: pages by account, moment by moment, exact where every event is told.

const BESIDE = 60;
const STACK = ["reserved", "protected", "request", "in_flight", "pending", "evictable", "free"];

// All numbers of a track, one row a packet, folded once.
function numbersOfAll(track) {
  if (track.rows) return track.rows;
  const wide = track.head.number_fields.length, rows = new Float64Array(track.count * wide);
  const nothing = () => {};
  for (let place = 0; place < track.count; place++) {
    const at = place * wide;
    if (place) rows.copyWithin(at, at - wide, at);
    readPacket(track, place, {
      owner: nothing, mapping: nothing, node: nothing, request: nothing,
      numbers(changes) { for (let each = 0; each < changes.length; each += 2) rows[at + changes[each]] += changes[each + 1]; },
    });
  }
  return track.rows = rows;
}

function accountsAt(track, pool, place) {
  const rows = numbersOfAll(track), at = place * track.head.number_fields.length;
  const value = name => rows[at + track.number[name]];
  const held = kind => value(`${track.head.pools[pool]}_${kind}`);
  const tree = held("tree");
  const evictable = pool === HOST ? value("host_bare") - value("host_protected")
    : tree - value(["full_protected", "swa_protected", "recurrent_protected"][pool]);
  const told = {
    reserved: held("reserved") + 1, protected: tree - evictable, request: held("request"), in_flight: held("in_flight"),
    pending: held("pending"), evictable, free: held("free"),
  };
  return STACK.map(name => track.unknownAt(place) ? 0 : Math.max(0, told[name]));
}

function drawCloseup(track, place, seek) {
  const first = Math.max(0, Math.min(place - BESIDE, track.count - 2 * BESIDE - 1));
  const last = Math.min(track.count - 1, first + 2 * BESIDE);
  const span = Math.max(1, last - first);
  const close = document.getElementById("close");
  close.replaceChildren();
  for (const { name, pool, size } of track.poolsThere()) {
    const picture = svg("svg", { class: "chart", viewBox: "0 0 1000 92", preserveAspectRatio: "none", "aria-hidden": "true" });
    const stacks = [];
    for (let each = first; each <= last; each++) stacks.push(accountsAt(track, pool, each));
    let below = stacks.map(() => 0);
    STACK.forEach((account, layer) => {
      const above = below.map((value, at) => value + stacks[at][layer]);
      if (above.some((value, at) => value > below[at])) {
        picture.append(svg("path", { class: `a-${account}`, d: area(below, above, span, size) }));
      }
      below = above;
    });
    picture.append(...shades(track, first, last, span));
    const now = accountsAt(track, pool, place), unknown = track.unknownAt(place);
    const told = unknown ? notKnown(unknown.lost) : STACK.map((account, layer) => [account, now[layer]]).reverse()
      .filter(([account, value]) => value && account !== "reserved")
      .map(([account, value]) => `${account.replace("_", " ")} ${count(value)}`).join(", ");
    const hair = el("div", { class: "hair" });
    hair.style.left = `${(place - first + 0.5) / (span + 1) * 100}%`;
    const plot = el("div", { class: "plot seek" }, picture, hair);
    plot.addEventListener("click", event => {
      const box = plot.getBoundingClientRect();
      seek(first + Math.min(span, Math.floor((event.clientX - box.left) / box.width * (span + 1))));
    });
    close.append(el("p", { class: "pool" }, el("b", {}, name), el("span", { class: "soft" }, told)), plot);
  }
  close.append(el("div", { class: "axis" },
    el("span", {}, `event ${count(track.seq[first])}`), el("span", {}, `event ${count(track.seq[last])}`)));
  document.getElementById("close-note").textContent =
    `${many(last - first + 1, "moment")} around this one; each step is one event, or one summary.`;
}

// Moments whose state is not known, next to each other as one.
function shades(track, first, last, span) {
  const found = [];
  for (let place = first; place <= last; place++) {
    if (!track.unknownAt(place)) continue;
    const at = place - first, before = found[found.length - 1];
    if (before && before[1] === at) before[1] = at + 1;
    else found.push([at, at + 1]);
  }
  const x = at => at / (span + 1) * 1000;
  return found.map(([from, to]) => svg("rect", { class: "unknown", x: x(from), y: 0, width: x(to) - x(from), height: 92 }));
}

// Steps: what is true behind a moment stays so until the next.
function area(below, above, span, size) {
  const x = at => (at / (span + 1) * 1000).toFixed(1), y = value => (92 - 92 * Math.min(1, value / size)).toFixed(2);
  let path = `M0 ${y(below[0])}`;
  above.forEach((value, at) => { path += `L${x(at)} ${y(value)}L${x(at + 1)} ${y(value)}`; });
  for (let at = below.length - 1; at >= 0; at--) path += `L${x(at + 1)} ${y(below[at])}L${x(at)} ${y(below[at])}`;
  return path + "Z";
}
