// The desk: which rank, which moment, what is chosen; and everything that is drawn when one of them changes.

const MOST_REQUESTS = 60, MOST_FOUND = 3;
const $ = id => document.getElementById(id);

class Desk {
  constructor(sources) {
    this.sources = sources;
    this.tracks = new Map();
    this.choice = null;
    this.panel = new Panel(this);
    for (const { key, label } of sources) $("track").append(el("option", { value: key }, clean(label)));
    this.listen();
  }

  async open(key, seq = null, step = null) {
    this.wanted = key;
    if (!this.tracks.has(key)) {
      const source = this.sources.find(each => each.key === key);
      this.tracks.set(key, new Track(await unpacked(source.element.textContent)));
      source.element.remove();
    }
    if (this.wanted !== key) return;  // another rank was chosen while this one was unpacked
    const track = this.track = this.tracks.get(key);
    this.rank = key;
    this.choice = null;
    $("track").value = key;
    $("slider").min = track.seq[0];
    $("slider").max = track.seq[track.count - 1];
    this.findings = [...new Set(track.head.findings.map(each => each.seq))].sort((one, other) => one - other);
    $("maps").replaceChildren();
    this.maps = track.poolsThere().map(pool => new PageMap($("maps"), pool, choice => this.choose(choice)));
    $("map-key").hidden = !track.unknown.length;
    this.tree = new TreeMap($("tree"), choice => this.choose(choice));
    this.drawStrip();
    const place = seq !== null ? track.placeShowing(seq) : step !== null ? track.placeOfStep(step)
      : track.head.begin || this.findings.length ? track.placeShowing(track.head.begin || this.findings[0]) : track.count - 1;
    this.choice = this.pageOfFinding(track.seq[place]);
    this.go(place);
  }

  // The page that the finding at an event is about: where to begin.
  pageOfFinding(seq) {
    const told = this.track.head.findings.find(each => each.seq === seq && each.pages.length);
    const pool = told ? this.track.head.pools.indexOf(told.pool) : -1;
    return pool < 0 ? null : { type: "page", pool, number: told.pages[0] };
  }

  // -- moving ---------------------------------------------------------------------------------------------

  go(place) {
    const track = this.track;
    this.place = Math.max(0, Math.min(track.count - 1, place));
    this.due ??= requestAnimationFrame(() => {
      this.due = null;
      this.draw();
    });
  }

  goTo(seq) { this.go(this.track.placeShowing(seq)); }

  async jump(key, seq) {
    if (key !== this.rank) await this.open(key, seq);
    else this.goTo(seq);
    $("moment").scrollIntoView();
  }

  goToFinding(on) {
    const seq = this.track.seq[this.place];
    const next = on ? this.findings.find(each => each > seq) : [...this.findings].reverse().find(each => this.track.placeShowing(each) < this.place);
    if (next !== undefined) this.goTo(next);
    else $("found").textContent = this.findings.length ? "There is no further finding." : "This rank has no finding.";
  }

  choose(choice) {
    this.choice = choice;
    this.go(this.place);
    if (choice && matchMedia("(max-width: 860px)").matches) this.panel.box.scrollIntoView({ block: "nearest" });
  }

  find(text) {
    const told = $("found"), wanted = text.trim(), track = this.track;
    const [, word, digits] = /^([a-z]*)\s*#?([\d,]+)$/i.exec(wanted) || [];
    const number = digits ? Number(digits.replaceAll(",", "")) : NaN, name = (word || "").toLowerCase();
    const pool = track.head.pools.findIndex(each => each.toLowerCase() === (name === "page" ? "full" : name));
    told.textContent = "";
    const first = track.seq[0], last = track.seq[track.count - 1];
    if (digits && (name === "" || name === "event")) {
      if (first <= number && number <= last) return this.goTo(number);
      told.textContent = `There is no event ${count(number)} here: they go from ${count(first)} to ${count(last)}.`;
      return undefined;
    }
    if (digits && name === "step") return this.go(track.placeOfStep(number));
    if (digits && name === "node") return this.choose({ type: "node", number });
    if (digits && name === "request") return this.choose({ type: "request", number });
    if (digits && pool >= 0 && number < track.sizes()[pool]) return this.choose({ type: "page", pool, number });
    const life = track.head.lives.find(each => each[1] === wanted) || track.head.lives.find(each => wanted && each[1].includes(wanted));
    if (life) return this.choose({ type: "request", number: life[0] });
    told.textContent = `Nothing here is called \u201c${clean(wanted)}\u201d. An event (26), a page (full 57, swa 9), node 3, request 98 or a request's id can be found.`;
  }

  listen() {
    const on = (id, event, react) => $(id).addEventListener(event, react);
    on("track", "change", () => this.open($("track").value, null, this.track.step[this.place]));
    on("slider", "input", () => this.goTo(Number($("slider").value)));
    on("to-first", "click", () => this.go(0));
    on("to-before", "click", () => this.go(this.place - 1));
    on("to-next", "click", () => this.go(this.place + 1));
    on("to-last", "click", () => this.go(this.track.count - 1));
    on("finding-before", "click", () => this.goToFinding(false));
    on("finding-next", "click", () => this.goToFinding(true));
    on("find", "submit", event => {
      event.preventDefault();
      this.find($("wanted").value);
    });
    document.addEventListener("keydown", event => this.key(event));
    document.addEventListener("click", event => {
      const button = event.target.closest?.("button.go");
      if (button && this.sources.some(each => each.key === button.dataset.track)) this.jump(button.dataset.track, Number(button.dataset.seq));
    });
    for (const plot of document.querySelectorAll("#occupancy .plot")) {
      plot.classList.add("seek");
      plot.addEventListener("click", event => this.seekOn(plot, event));
    }
    addEventListener("resize", () => this.track && this.go(this.place));
  }

  seekOn(plot, event) {
    const box = plot.getBoundingClientRect(), first = Number(plot.dataset.first), last = Number(plot.dataset.last);
    const seq = Math.round(first + (event.clientX - box.left) / box.width * (last - first));
    const key = plot.closest("[data-track]").dataset.track;
    if (key !== this.rank) this.open(key, seq);
    else this.goTo(seq);
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey || !this.track) return;
    const typing = event.target.matches?.("input:not([type=range]), select, textarea");
    if (typing) return;
    const far = event.shiftKey ? 100 : 1, twentieth = (this.track.head.last - this.track.head.first) / 20;
    const seq = this.track.seq[this.place];
    const moves = {
      ArrowLeft: () => this.go(this.place - far), ArrowRight: () => this.go(this.place + far),
      PageUp: () => this.goTo(seq - twentieth), PageDown: () => this.goTo(seq + twentieth),
      Home: () => this.go(0), End: () => this.go(this.track.count - 1),
      v: () => this.goToFinding(true), V: () => this.goToFinding(false),
      f: () => $("wanted").focus(), Escape: () => this.choose(null),
    };
    const onDesk = event.target === document.body || $("moment").contains(event.target);
    if (!moves[event.key] || (!onDesk && /^(Page|Home|End)/.test(event.key))) return;
    event.preventDefault();
    moves[event.key]();
  }

  // -- drawing --------------------------------------------------------------------------------------------

  draw() {
    const track = this.track, place = this.place;
    const moves = new Moves(track, place);
    const tables = track.shown(place);
    this.tell(track, tables, place, moves);
    for (const map of this.maps) map.draw(track, tables, moves.fresh[map.pool], this.chosenPages(tables, map.pool));
    this.tree.draw(track, tables, number => this.choice?.type === "node" && this.choice.number === number);
    drawCloseup(track, place, where => this.go(where));
    this.drawRequests(track, tables);
    this.panel.show(track, tables, moves, this.choice);
    this.drawHairs(track, place);
    const slider = $("slider");
    slider.value = track.seq[place];
    const known = tables.unknown ? ", not known" : "";
    slider.setAttribute("aria-valuetext", `${placeText(track, place)}, ${eventName(track, place)}${known}`);
    $("to-first").disabled = $("to-before").disabled = place === 0;
    $("to-last").disabled = $("to-next").disabled = place === track.count - 1;
    document.body.dataset.seq = track.seq[place];
    document.body.dataset.track = this.rank;
  }

  // The pages of a pool that were chosen, or that the node or request has that was chosen.
  chosenPages(tables, pool) {
    const choice = this.choice;
    if (!choice) return [];
    if (choice.type === "page") return choice.pool === pool ? [choice.number] : [];
    return pagesHeld(tables, pool, choice.type === "node" ? TREE : REQUEST, choice.number);
  }

  tell(track, tables, place, moves) {
    const before = place ? track.seq[place - 1] : track.head.first - 1, seq = track.seq[place];
    const wrong = track.head.findings.filter(each => each.seq > before && each.seq <= seq);
    const cause = causeText(track, place), running = track.value(tables, "running");
    const lines = [el("p", {}, el("span", { class: "place" }, placeText(track, place)), ` of ${count(track.head.last)} \u00b7 ${timeText(track.time[place])} \u00b7 step ${count(track.step[place])}`,
      tables.unknown ? "" : running > 0 ? ` \u00b7 device step ${count(track.value(tables, "running_step"))} runs` : " \u00b7 no device step runs",
      track.value(tables, "group_open") ? " \u00b7 a free group is open" : "")];
    if (track.tag[place]) lines.push(el("p", {}, el("b", {}, eventName(track, place)), cause ? ` ${cause}` : "", " ", el("code", {}, clean(track.lineOf(place)))));
    else lines.push(el("p", { class: "soft" }, `Summarised: what was true behind event ${count(seq)}. What happened in between is not on this page.`));
    if (tables.unknown) lines.push(this.unknownNote(tables.unknown));
    const found = wrong.map(each => el("p", { class: "wrong" }, `\u25b2 ${track.tag[place] ? "" : `event ${count(each.seq)}: `}${clean(each.law)}: ${clean(each.detail)}`));
    lines.push(...folded(found, MOST_FOUND), ...moves.told(track, tables));
    $("told").replaceChildren(...lines);
  }

  unknownNote({ since, lost, until }) {
    const again = until < this.track.head.last ? ` It is known again behind event ${count(until)}.` : "";
    return el("p", { class: "unknown-note" }, `The state is ${notKnown(lost)}: what led to it from event ${count(since)} on is missing.${again}`
      + " Shown is what events behind the gap say of pages, and of requests that were admitted there.");
  }

  drawRequests(track, tables) {
    const box = $("requests"), all = [...tables.requests], at = track.ask, unknown = tables.unknown;
    const others = unknown ? [el("p", { class: "soft" }, `Who lives of those that were admitted before is ${notKnown(unknown.lost)}.`)] : [];
    if (!all.length) return box.replaceChildren(...(unknown ? others : [el("p", { class: "soft" }, "None at this moment.")]));
    const columns = [["request", "text"], ["tokens", "n"], ["prompt", "n"], ["from the cache", "n"], ["lock", ""]];
    const rows = all.map(([number, each]) => [
      this.panel.link(clean(track.head.texts[each[at.rid]] || number), { type: "request", number }),
      count(each[at.length]), count(each[at.prompt]), count(each[at.prefix]),
      each[at.receipt] >= 0 ? this.panel.link(`node ${each[at.receipt]}`, { type: "node", number: each[at.receipt] }) : "none"]);
    box.replaceChildren(...others, grid(columns, rows.slice(0, MOST_REQUESTS)), ...more(rows.slice(MOST_REQUESTS), some => [grid(columns, some)]));
  }

  drawHairs(track, place) {
    document.querySelectorAll("#occupancy .hair").forEach(each => each.remove());
    const share = (track.seq[place] - track.head.first) / Math.max(1, track.head.last - track.head.first) * 100;
    for (const plot of document.querySelectorAll(`#occupancy [data-track="${this.rank}"] .plot`)) {
      const hair = el("div", { class: "hair" });
      hair.style.left = `${share}%`;
      plot.append(hair);
    }
  }

  drawStrip() {
    const track = this.track, first = track.seq[0], span = Math.max(1, track.seq[track.count - 1] - first);
    const x = seq => (seq - first) / span * 1000, strip = $("strip");
    strip.replaceChildren();
    for (const [from, to] of track.head.detail) {
      strip.append(svg("rect", { class: "s-detail", x: x(from), width: Math.max(2, x(to) - x(from)), y: 0, height: 22 }));
    }
    for (let place = 0; place < track.count; place++) {
      if (!track.tag[place]) strip.append(svg("line", { class: "s-stop", x1: x(track.seq[place]), x2: x(track.seq[place]), y1: 8, y2: 22 }));
    }
    for (const each of track.unknown) {
      const from = Math.max(0, x(each.since - 1));
      strip.append(svg("rect", { class: "unknown", x: from, width: Math.max(2, x(each.until) - from), y: 0, height: 22 }));
    }
    const pins = new Map();
    for (const seq of this.findings) {
      const at = Math.round(x(seq) / 8);
      if (!pins.has(at)) pins.set(at, []);
      pins.get(at).push(seq);
    }
    $("pins").replaceChildren(...[...pins.values()].map(seqs => {
      const text = seqs.length > 1 ? `${seqs.length} findings from event ${count(seqs[0])} on` : `Finding at event ${count(seqs[0])}`;
      const pin = el("button", { type: "button", "aria-label": text, title: text, on: { click: () => this.goTo(seqs[0]) } }, "\u25bc");
      pin.style.left = `${Math.max(1, Math.min(99, x(seqs[0]) / 10))}%`;
      return pin;
    }));
  }
}

// -- colours ------------------------------------------------------------------------------------------------

const THEMES = ["system", "light", "dark"];

function keep(theme) { try { localStorage.setItem("radixledger-theme", theme); } catch { /* a page from a file may not keep anything */ } }

function kept() { try { return localStorage.getItem("radixledger-theme"); } catch { return null; } }

function paintAs(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").textContent = `Colours: ${theme}`;
  $("theme").setAttribute("aria-label", `Colours: ${theme}. Press for the next.`);
}

function listenToTheme(redraw) {
  let theme = THEMES.includes(kept()) ? kept() : "system";
  paintAs(theme);
  $("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    keep(theme);
    paintAs(theme);
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
}

// What is folded away is printed all the same.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(each => { each.open = true; }));

async function begin() {
  let desk = null;
  listenToTheme(() => desk?.track && desk.go(desk.place));
  const sources = [...document.querySelectorAll("script.track")].map(element => ({ element, key: element.dataset.track, label: element.dataset.label }));
  if (!sources.length) {
    $("loading").textContent = "No moment could be read from the journal.";
    return;
  }
  if (typeof DecompressionStream === "undefined") {
    $("loading").textContent = "This browser cannot unpack the run (it has no DecompressionStream). Verdict, charts and findings are whole.";
    return;
  }
  try {
    desk = new Desk(sources);
    $("desk").hidden = false;
    const wrong = document.querySelector(".banner button.go");
    await desk.open(wrong ? wrong.dataset.track : sources[0].key, wrong ? Number(wrong.dataset.seq) : null);
    $("loading").hidden = true;
    document.body.dataset.ready = "yes";
  } catch (error) {
    $("loading").textContent = `The moments of this page cannot be shown: ${error.message}. Verdict, charts and findings are whole.`;
    $("desk").hidden = true;
    throw error;
  }
}

begin();
