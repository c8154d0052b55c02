// What was chosen: the life of a page, the events of a request, the locks of a node.

const MOST_LINES = 200;

class Panel {
  constructor(desk) {
    this.desk = desk;
    this.box = document.getElementById("panel");
    this.known = {};
  }

  // What packets say of a choice is the same at every moment: all of them are read when it is chosen, and not at each draw.
  once(track, name, read) {
    if (this.known.track !== track || this.known.name !== name) this.known = { track, name, found: read() };
    return this.known.found;
  }

  show(track, tables, moves, choice) {
    this.moves = moves;
    const parts = !choice ? this.nothing()
      : choice.type === "page" ? this.page(track, tables, choice)
      : choice.type === "node" ? this.node(track, tables, choice.number)
      : this.request(track, tables, choice.number);
    this.box.replaceChildren(...parts);
    const now = this.box.querySelector("[aria-current]");
    this.box.scrollTop = now ? now.offsetTop - this.box.clientHeight / 2 : 0;
  }

  nothing() {
    return [el("h3", {}, "Choose something"),
      el("p", { class: "soft" }, "Click a page for its life, a request for its events, a node for its locks; or type one into Find.")];
  }

  link(text, choice) {
    return el("button", { type: "button", class: "link", on: { click: () => this.desk.choose(choice) } }, text);
  }

  event(track, seq, text) {
    return el("button", { type: "button", class: "link", on: { click: () => this.desk.goTo(seq) } }, text || `event ${count(seq)}`);
  }

  owner(track, kind, holder) {
    const text = ownerText(track, kind, holder);
    if (kind === REQUEST && holder) return this.link(text, { type: "request", number: holder });
    return kind === TREE ? this.link(text, { type: "node", number: holder }) : text;
  }

  command(text) { return [el("p", { class: "soft" }, "The same from the journal, nothing left out:"), el("p", {}, el("code", {}, text))]; }

  page(track, tables, { pool, number }) {
    const name = track.head.pools[pool], rank = track.head.rank;
    const kind = tables.kind[pool][number], holder = tables.holder[pool][number];
    const facts = [["now", this.owner(track, kind, holder)]];
    if (kind !== UNKNOWN) facts.push(["since", this.event(track, tables.since[pool][number])]);
    const giver = this.moves.ownerBefore(pool, number);
    if (giver) facts.splice(1, 0, ["before this event", this.owner(track, giver.kind, giver.holder)]);
    const partners = pool === FULL ? [tables.mapped[number]].filter(Boolean)
      : pool === SWA ? [...tables.mapped.keys()].filter(full => full && tables.mapped[full] === number) : [];
    if (partners.length) {
      const other = pool === FULL ? SWA : FULL;
      facts.push(["mapped with", el("span", {}, ...folded(partners.map(page =>
        this.link(`${track.head.pools[other]} page ${page} `, { type: "page", pool: other, number: page })), 4))]);
    }
    if (tables.unknown && pool < RECURRENT) facts.push(["mapped with", notKnown(tables.unknown.lost)]);
    const life = this.once(track, `page ${pool} ${number}`, () => lifeOf(track, pool, number));
    const now = tables.since[pool][number], last = life.findLastIndex(step => step.since === now);
    const items = [], gaps = [...track.unknown];
    const gap = each => items.push(el("li", kind === UNKNOWN && holder === each.lost ? { "aria-current": "true" } : {}, this.event(track, each.lost), " \u2192 not known: events are missing"));
    life.forEach((step, place) => {
      while (gaps.length && gaps[0].lost < step.since) gap(gaps.shift());
      items.push(el("li", place === last ? { "aria-current": "true" } : {},
        this.event(track, step.since), step.told ? "" : el("span", { class: "soft" }, " (summarised)"), " \u2192 ", this.owner(track, step.kind, step.holder)));
    });
    gaps.forEach(gap);
    return [el("h3", {}, `${name} page ${number}`), definitions(facts),
      el("h4", {}, "Its life on this page"), ...this.latest("ol", items), ...this.command(`radixledger replay blame ${track.head.run} --rank ${rank} --pool ${name.toLowerCase()} --page ${number}`)];
  }

  latest(list, items) {
    return [...more(items.slice(0, -MOST_LINES), left => [el(list, {}, ...left)], "earlier"), el(list, {}, ...items.slice(-MOST_LINES))];
  }

  // The pages of an owner behind the event and, where it moved some of them, those before it.
  pagesOf(track, tables, kind, number, label) {
    return track.poolsThere().flatMap(({ name, pool }) => {
      const behind = pagesHeld(tables, pool, kind, number);
      if (tables.unknown) return [[label(name), behind.length ? el("span", {}, runsIn(behind), ", and perhaps others") : "none that is known"]];
      const before = this.moves.heldBefore(pool, kind, number, behind);
      return [[label(name), runsIn(behind)], ...(before ? [["before this event", runsIn(before)]] : [])];
    });
  }

  request(track, tables, number) {
    const live = tables.requests.get(number), life = track.head.lives.find(each => each[0] === number);
    const rid = clean(track.ridOf(number)), facts = [["number", String(number)]];
    if (life && life[2]) facts.push(["admitted", this.event(track, life[2])]);
    if (life) facts.push(["prompt", `${count(life[3])} tokens, ${count(life[4])} of them from the cache`]);
    if (life && life[5]) facts.push([life[6].toLowerCase(), this.event(track, life[5])]);
    if (live) facts.push(...this.living(track, tables, number, live));
    else if (life && life[5] && life[5] <= track.seq[track.place]) facts.push(["now", "over"]);
    else facts.push(["now", tables.unknown ? notKnown(tables.unknown.lost) : "not there"]);
    const found = this.once(track, `request ${number}`, () => eventsOf(track, number));
    const line = place => el("li", {}, this.event(track, track.seq[place]), ` ${eventName(track, place)} `, el("span", { class: "soft" }, causeText(track, place)));
    const at = Math.max(0, found.findIndex(place => place >= track.place) - MOST_LINES / 2), list = some => el("ul", {}, ...some.map(line));
    return [el("h3", {}, rid ? `Request ${rid}` : `Request ${number}`), definitions(facts),
      el("h4", {}, `Its events at full detail: ${count(found.length)}`), ...more(found.slice(0, at), left => [list(left)], "earlier"),
      list(found.slice(at, at + MOST_LINES)), ...more(found.slice(at + MOST_LINES), left => [list(left)], "later")];
  }

  living(track, tables, number, live) {
    const at = track.ask, holds = live[at.receipt];
    const held = this.pagesOf(track, tables, REQUEST, number, name => `${name} of its own`);
    return [["length", `${count(live[at.length])} tokens`], ["held by the tree", `up to token ${count(live[at.protected])}`],
      ["SWA given back", `below token ${count(live[at.cursor])}`],
      ["lock", holds >= 0 ? this.link(`node ${holds}`, { type: "node", number: holds }) : "none"], ...held];
  }

  node(track, tables, number) {
    const node = tables.nodes.get(number), at = track.node;
    const events = this.once(track, `node ${number}`, () => eventsOfNode(track, number));
    const items = events.map(place => el("li", {}, this.event(track, track.seq[place], placeText(track, place)),
      ` ${track.tag[place] ? eventName(track, place) : ""} `, el("span", { class: "soft" }, causeText(track, place))));
    const story = [el("h4", {}, "What changed it"), ...this.latest("ul", items)];
    const nowhere = tables.unknown ? `Whether it is in the tree is ${notKnown(tables.unknown.lost)}.` : "Not in the tree at this moment.";
    if (!node) return [el("h3", {}, `Node ${number}`), el("p", {}, nowhere),
      definitions(this.pagesOf(track, tables, TREE, number, name => `${name} pages`)), ...story];
    const children = [...tables.nodes].filter(each => each[1][at.parent] === number).map(each => each[0]);
    const holders = holdersOf(track, tables, number);
    const known = [...tables.requests.values()].filter(each => each[track.ask.receipt] === number).length;
    const facts = [["where", nodeText(track, number, node).replace(/^node \d+: /, "")],
      ["parent", node[at.parent] >= 0 ? this.link(`node ${node[at.parent]}`, { type: "node", number: node[at.parent] }) : "none: the root"],
      ["children", children.length ? el("span", {}, ...folded(children.map(each => this.link(`${each} `, { type: "node", number: each })), 12)) : "none"]];
    facts.push(...this.pagesOf(track, tables, TREE, number, name => `${name} pages`));
    const lost = [[FULL, node[at.full]], [SWA, node[at.swa]]].map(([pool, named]) => [pool, named - pagesHeld(tables, pool, TREE, number).length]).filter(([, short]) => short > 0);
    if (lost.length) facts.push(["named by the node", lost.map(([pool, short]) => `${many(short, `${track.head.pools[pool]} page`)} that it no longer owns`).join(", ")]);
    const locks = [["receipts on this very node", String(node[at.anchors])], ["holds FULL", `${node[at.holds]} (receipts here, and children that are held)`],
      ["holds SWA", `${node[at.swa_locks]} windows run through here`], ["boundary mark", node[at.boundary] ? String(node[at.boundary]) : "none"]];
    const who = holders.map(request => el("li", {}, this.link(`request ${request} ${clean(track.ridOf(request))}`, { type: "request", number: request })));
    const strange = node[at.anchors] - known;
    return [el("h3", {}, `Node ${number}`), definitions(facts), el("h4", {}, "Its locks"), definitions(locks),
      who.length ? el("ul", { "aria-label": "Who holds it" }, ...who) : el("p", {}, "No request holds it."),
      ...(strange > 0 ? [el("p", {}, `${many(strange, "receipt")} on this node ${strange === 1 ? "is" : "are"} of no request that lives.`)] : []), ...story];
  }
}

function definitions(pairs) {
  return el("dl", {}, ...pairs.flatMap(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

// Requests whose receipt is for this node or for one below it.
function holdersOf(track, tables, number) {
  const holders = [];
  for (const [request, record] of tables.requests) {
    let walk = record[track.ask.receipt], steps = 0;
    while (walk >= 0 && walk !== number && steps++ < 1e5) walk = tables.nodes.get(walk)?.[track.node.parent] ?? -1;
    if (walk === number) holders.push(request);
  }
  return holders;
}

// Every owner of a page that the packets tell of. An owner that a summary tells has the event that made it so.
function lifeOf(track, pool, number) {
  const life = [];
  let place = 0;
  const on = { owner(where, page, kind, holder, since) {
    if (where === pool && page === number) life.push({ kind, holder, since, told: track.tag[place] > 0 });
  } };
  for (; place < track.count; place++) readPacket(track, place, on);
  return life;
}

function placesWhere(track, hears) {
  const found = [], nothing = () => {};
  let hit = false;
  const on = { owner: nothing, mapping: nothing, node: nothing, request: nothing, numbers: nothing, ...hears(() => { hit = true; }) };
  for (let place = 0; place < track.count; place++) {
    hit = false;
    readPacket(track, place, on);
    if (hit) found.push(place);
  }
  return found;
}

function eventsOf(track, number) {
  const found = placesWhere(track, hit => ({
    request(each) { if (each === number) hit(); },
    owner(pool, page, kind, holder) { if (kind === REQUEST && holder === number) hit(); },
  }));
  const named = new Set(found);
  for (let place = 0; place < track.count; place++) if (track.request[place] === number) named.add(place);
  return [...named].filter(place => track.tag[place]).sort((one, other) => one - other);
}

function eventsOfNode(track, number) {
  return placesWhere(track, hit => ({
    node(each) { if (each === number) hit(); },
    owner(pool, page, kind, holder) { if (kind === TREE && holder === number) hit(); },
  }));
}
