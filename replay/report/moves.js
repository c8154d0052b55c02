// What one event moved, and what each owner whose pages it moved had before the event and has behind it.

const MOST_MOVES = 6, MOST_HELD = 8;

class Moves {
  // To be read before the tables are brought to `place`: the owners before it are in them.
  constructor(track, place) {
    this.all = [];
    this.fresh = [[], [], [], []];
    this.sides = new Map();
    if (!track.tag[place] || eventName(track, place) === "Opened") return;
    const before = track.shown(place - 1), owners = new Map();
    if (before.unknown && !track.unknownAt(place)) return;  // what is known again was not moved
    const owner = (kind, holder) => {
      const key = `${kind} ${holder}`;
      if (!owners.has(key)) owners.set(key, { kind, holder, key, text: ownerText(track, kind, holder) });
      return owners.get(key);
    };
    readPacket(track, place, { owner: (pool, page, kind, holder) => {
      const from = owner(before.kind[pool][page], before.holder[pool][page]), to = owner(kind, holder);
      this.all.push({ pool, page, from, to });
      this.fresh[pool].push(page);
      if (from === to) return;
      this.side(pool, from).given.push(page);
      this.side(pool, to).taken.add(page);
    } });
  }

  side(pool, owner) {
    const key = `${pool} ${owner.key}`;
    if (!this.sides.has(key)) this.sides.set(key, { pool, owner, given: [], taken: new Set() });
    return this.sides.get(key);
  }

  // The owner of a page before the event, null where the event did not move it.
  ownerBefore(pool, page) { return this.all.find(each => each.pool === pool && each.page === page)?.from || null; }

  // What an owner had before the event, from what it has behind it; null where that is the same.
  heldBefore(pool, kind, holder, behind) {
    const side = this.sides.get(`${pool} ${kind} ${holder}`);
    return side ? [...behind.filter(page => !side.taken.has(page)), ...side.given] : null;
  }

  // Pages by pool, from whom to whom.
  line(track, group) {
    const { pool, from, to } = group[0];
    return el("p", { class: "soft" }, `${track.head.pools[pool]} `, runsIn(group.map(each => each.page)), `: ${from.text} \u2192 ${to.text}`);
  }

  // The pages of one request, node or transfer in one pool.
  row(track, tables, { pool, owner }) {
    const behind = pagesHeld(tables, pool, owner.kind, owner.holder), before = this.heldBefore(pool, owner.kind, owner.holder, behind);
    return [owner.text, track.head.pools[pool], runsIn(before), runsIn(behind)];
  }

  // The whole of it for the card of an event.
  told(track, tables) {
    const groups = grouped(this.all, each => `${each.pool} ${each.from.key}\u2192${each.to.key}`), lines = some => some.map(each => this.line(track, each));
    const owned = [...this.sides.values()].filter(each => [REQUEST, TREE, IN_FLIGHT].includes(each.owner.kind));
    const sides = grouped(owned, each => each.owner.key).flat();
    const columns = [["whose pages", "text"], ["pool", ""], ["before the event", "text"], ["behind it", "text"]];
    const table = some => [grid(columns, some.map(each => this.row(track, tables, each)))];
    return [...lines(groups.slice(0, MOST_MOVES)), ...more(groups.slice(MOST_MOVES), lines),
      ...(sides.length && !tables.unknown ? [...table(sides.slice(0, MOST_HELD)), ...more(sides.slice(MOST_HELD), table)] : [])];
  }
}

// What has the same key together, in the order in which the keys come.
function grouped(all, keyOf) {
  const groups = new Map();
  for (const each of all) {
    const key = keyOf(each);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(each);
  }
  return [...groups.values()];
}

// The pages of a pool that are in an account; page 0 is nobody's.
function pagesHeld(tables, pool, kind, holder) {
  const pages = [], kinds = tables.kind[pool], holders = tables.holder[pool];
  for (let page = 1; page < kinds.length; page++) if (kinds[page] === kind && holders[page] === holder) pages.push(page);
  return pages;
}
