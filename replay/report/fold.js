// The states of one rank: packets are written onto tables, and tables are kept now and then, so that any moment is near.

// Kinds of accounts and pools, by the numbers that the head names.
const REQUEST = 3, TREE = 4, IN_FLIGHT = 5;
// Of a page whose account is not known, in the place of a kind; its holder is then the event behind which it is not.
const UNKNOWN = 255;
const FULL = 0, SWA = 1, RECURRENT = 2, HOST = 3;
const MOST_KEPT = 48, KEPT_BYTES = 96e6;

class Tables {
  constructor(sizes) {
    this.kind = sizes.map(size => new Uint8Array(size));
    this.holder = sizes.map(size => new Float64Array(size));
    this.since = sizes.map(size => new Float64Array(size));
    this.mapped = new Int32Array(sizes[0]);
    this.nodes = new Map();
    this.requests = new Map();
    this.numbers = [];
    this.unknown = null;
  }

  copy() {
    const copy = Object.create(Tables.prototype);
    copy.kind = this.kind.map(each => each.slice());
    copy.holder = this.holder.map(each => each.slice());
    copy.since = this.since.map(each => each.slice());
    copy.mapped = this.mapped.slice();
    copy.nodes = new Map(this.nodes);
    copy.requests = new Map(this.requests);
    copy.numbers = this.numbers;
    copy.unknown = null;
    return copy;
  }
}

// What a packet says, part by part: `on` has a function for each part that somebody wants to hear of.
function readPacket(track, place, on) {
  const reader = new Reader(track.columns.bodies, track.begins[place]), seq = track.seq[place];
  for (let pool = 0; pool < 4; pool++) {
    for (let groups = reader.unsigned(); groups > 0; groups--) {
      const kind = reader.unsigned(), holder = reader.unsigned(), since = seq - reader.unsigned();
      let page = 0;
      for (let count = reader.unsigned(); count > 0; count--) {
        page += reader.signed();
        on.owner(pool, page, kind, holder, since);
      }
    }
  }
  if (!on.mapping) return;
  const full = ascending(reader);
  for (const page of full) on.mapping(page, reader.signed());
  readRecords(reader, on.node);
  readRecords(reader, on.request);
  on.numbers(pairs(reader));
}

function readRecords(reader, tell) {
  for (const number of ascending(reader)) tell(number, null);
  let number = 0;
  for (let count = reader.unsigned(); count > 0; count--) {
    number += reader.signed();
    tell(number, pairs(reader));
  }
}

function ascending(reader) {
  const numbers = [];
  let number = 0;
  for (let count = reader.unsigned(); count > 0; count--) numbers.push(number += reader.signed());
  return numbers;
}

function pairs(reader) {
  const changes = [];
  for (let count = reader.unsigned(); count > 0; count--) changes.push(reader.unsigned(), reader.signed());
  return changes;
}

function changed(record, changes, size) {
  const next = record ? record.slice() : new Array(size).fill(0);
  for (let at = 0; at < changes.length; at += 2) next[changes[at]] = (next[changes[at]] || 0) + changes[at + 1];
  return next;
}

class Track {
  constructor({ head, columns }) {
    Object.assign(this, { head, columns });
    const count = head.packets;
    this.count = count;
    for (const name of ["seq", "time", "step", "line"]) this[name] = numbersIn(columns[name], count, true);
    for (const name of ["tag", "cause", "request", "size"]) this[name] = numbersIn(columns[name], count, false);
    this.begins = new Float64Array(count);
    for (let place = 1; place < count; place++) this.begins[place] = this.begins[place - 1] + this.size[place - 1];
    this.unknown = head.unknown.map(([since, lost, until, last]) => ({ since, lost, until, last }));
    this.node = named(head.node_fields);
    this.ask = named(head.request_fields);
    this.number = named(head.number_fields);
    this.kept = new Map([[-1, new Tables(this.sizes())]]);
    this.keep = this.placesToKeep();
    this.now = this.kept.get(-1).copy();
    this.place = -1;
  }

  // A pool may change its size with an epoch: tables are as large as the largest.
  sizes() {
    const sizes = [1, 1, 1, 1];
    this.head.pools.forEach((name, pool) => {
      const at = this.number[name + "_capacity"];
      for (const numbers of this.head.buckets.numbers) sizes[pool] = Math.max(sizes[pool], numbers[at] + 1);
    });
    return sizes;
  }

  // Places so far apart that what lies between two of them is read in about the same time.
  placesToKeep() {
    const bytes = this.sizes().reduce((sum, size) => sum + 17 * size, 1e5);
    const most = Math.max(8, Math.min(MOST_KEPT, Math.floor(KEPT_BYTES / bytes)));
    const stretch = this.columns.bodies.length / most, places = new Set();
    let next = stretch;
    for (let place = 0; place < this.count; place++) {
      if (this.begins[place] + this.size[place] < next) continue;
      places.add(place);
      next = this.begins[place] + this.size[place] + stretch;
    }
    return places;
  }

  // The tables behind packet `place`, which belong to the track.
  at(place) {
    let from = place;
    while (from > this.place && !this.kept.has(from)) from--;
    if (place < this.place) while (!this.kept.has(from)) from--;
    if (from !== this.place && this.kept.has(from)) {
      this.now = this.kept.get(from).copy();
      this.place = from;
    }
    while (this.place < place) {
      this.write(this.now, ++this.place);
      if (this.keep.has(this.place) && !this.kept.has(this.place)) this.kept.set(this.place, this.now.copy());
    }
    return this.now;
  }

  // The stretch of missing events behind which a moment is; null where the state is known.
  unknownAt(place) {
    const seq = this.seq[place];
    return this.unknown.find(each => each.lost <= seq && seq <= each.until) || null;
  }

  // What may be shown of the moment behind packet `place`: where the state is not known, what events behind the gap say.
  shown(place) {
    const tables = this.at(place), unknown = place < 0 ? null : this.unknownAt(place);
    return unknown ? judged(this, tables, unknown) : tables;
  }

  admitted(request) {
    this.begun ??= new Map(this.head.lives.map(life => [life[0], life[2]]));
    return this.begun.get(request) || 0;
  }

  write(tables, place) {
    const { node_fields, request_fields, number_fields } = this.head;
    const records = (map, size) => (number, changes) => {
      if (changes === null) map.delete(number);
      else map.set(number, changed(map.get(number), changes, size));
    };
    readPacket(this, place, {
      owner(pool, page, kind, holder, since) {
        tables.kind[pool][page] = kind;
        tables.holder[pool][page] = holder;
        tables.since[pool][page] = since;
      },
      mapping(full, swa) { tables.mapped[full] = swa; },
      node: records(tables.nodes, node_fields.length),
      request: records(tables.requests, request_fields.length),
      numbers(changes) { tables.numbers = changed(tables.numbers, changes, number_fields.length); },
    });
  }

  // The last packet that is not later than an event; the first one where all are.
  placeOf(seq) {
    let low = 0, high = this.count - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.seq[middle] <= seq) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  // The place from which an event can be seen: its own packet, or the summary that it went into.
  placeShowing(seq) {
    const place = this.placeOf(seq);
    return this.seq[place] < seq && place + 1 < this.count ? place + 1 : place;
  }

  placeOfStep(step) {
    for (let place = 0; place < this.count; place++) if (this.step[place] >= step) return place;
    return this.count - 1;
  }

  lineOf(place) {
    this.lines ??= new TextDecoder().decode(this.columns.lines).split("\n");
    return this.lines[this.line[place]] || "";
  }

  value(tables, name) { return tables.numbers[this.number[name]] || 0; }

  poolsThere() {
    const sizes = this.sizes();
    return this.head.pools.map((name, pool) => ({ name, pool, size: sizes[pool] })).filter(each => each.size > 1);
  }

  ridOf(request) {
    const live = this.now.requests.get(request);
    if (live) return this.head.texts[live[this.ask.rid]] || "";
    this.rids ??= new Map(this.head.lives.map(life => [life[0], life[1]]));
    return this.rids.get(request) || "";
  }
}

// Of tables that were folded over a gap: the pages that an event behind it moved, and the requests that were admitted there.
function judged(track, tables, unknown) {
  const copy = tables.copy();
  copy.unknown = unknown;
  copy.kind.forEach((kinds, pool) => {
    const holders = copy.holder[pool], since = copy.since[pool];
    for (let page = 1; page < kinds.length; page++) {
      if (since[page] > unknown.last) continue;
      kinds[page] = UNKNOWN;
      holders[page] = since[page] = unknown.lost;
    }
  });
  copy.mapped.fill(0);
  copy.nodes.clear();
  copy.numbers = [];
  for (const number of tables.requests.keys()) if (track.admitted(number) <= unknown.last) copy.requests.delete(number);
  return copy;
}

function named(fields) {
  return Object.fromEntries(fields.map((name, place) => [name, place]));
}
