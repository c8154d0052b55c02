// The pages of each pool as squares, in the colours of the charts; what the moment changed has a ring.

// What is not known has a stroke through it: the account or, of a page of the tree, whether it is locked.
const PAINTS = [...STACK, "unknown", "tree"];

class PageMap {
  constructor(box, pool, choose) {
    Object.assign(this, { pool: pool.pool, name: pool.name, size: pool.size, choose, spot: 1 });
    this.canvas = el("canvas", { tabindex: "0", role: "application", "aria-label": `${pool.name} pages: arrows move, Enter chooses` });
    this.under = el("p", { class: "soft", role: "status" }, "\u00a0");
    this.box = el("div", { class: "mapbox" }, this.canvas);
    box.append(el("p", { class: "pool" }, el("b", {}, pool.name), el("span", { class: "soft" }, many(pool.size - 1, "page"))),
      this.box, this.under);
    this.canvas.addEventListener("click", event => this.pick(this.pageAt(event)));
    this.canvas.addEventListener("mousemove", event => this.tell(this.pageAt(event)));
    this.canvas.addEventListener("keydown", event => this.key(event));
    this.canvas.addEventListener("focus", () => this.tell(this.spot));
  }

  pageAt(event) {
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left) / this.cell), row = Math.floor((event.clientY - box.top) / this.cell);
    const page = row * this.columns + column;
    return column >= 0 && column < this.columns && page < this.size ? page : 0;
  }

  key(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns }[event.key];
    if (step) {
      this.spot = Math.max(1, Math.min(this.size - 1, this.spot + step));
      this.tell(this.spot);
      this.draw(this.track, this.tables, this.fresh, this.chosen);
    } else if (event.key === "Enter" || event.key === " ") this.pick(this.spot);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  pick(page) {
    if (!page) return;
    this.spot = page;
    this.tell(page);
    this.choose({ type: "page", pool: this.pool, number: page });
  }

  tell(page) {
    if (!this.tables || !page) return;
    const kind = this.tables.kind[this.pool][page], owner = ownerText(this.track, kind, this.tables.holder[this.pool][page]);
    const since = kind === UNKNOWN ? "" : `, since event ${count(this.tables.since[this.pool][page])}`;
    this.under.textContent = `page ${page}: ${owner}${since}`;
  }

  draw(track, tables, fresh, chosen) {
    Object.assign(this, { track, tables, fresh, chosen });
    const width = this.box.clientWidth - 2, size = this.size;
    if (width < 1) return;
    this.cell = Math.max(3, Math.min(16, Math.floor(Math.sqrt(width * 300 / size))));
    this.columns = Math.max(1, Math.floor(width / this.cell));
    const height = Math.ceil(size / this.columns) * this.cell;
    const pen = canvasOf(this.canvas, width, height);
    if (this.cell > 5) this.paintSquares(pen);
    else this.paintDots(pen);
    pen.lineWidth = this.cell > 5 ? 2 : 1;
    pen.strokeStyle = colour("ink");
    for (const page of fresh) this.ring(pen, page);
    pen.strokeStyle = colour("alarm");
    for (const page of chosen) this.ring(pen, page);
    if (document.activeElement === this.canvas) {
      pen.strokeStyle = colour("accent");
      pen.lineWidth = 3;
      this.ring(pen, this.spot);
    }
  }

  // The account of each page, by its place in PAINTS; nodes are looked up once.
  accounts() {
    const { track, tables, pool } = this, kinds = tables.kind[pool], holders = tables.holder[pool];
    const places = new Uint8Array(this.size), nodes = new Map();
    const plain = track.head.kinds.map(name => Math.max(0, STACK.indexOf(name)));
    for (let page = 1; page < this.size; page++) {
      if (kinds[page] === UNKNOWN) places[page] = STACK.length;
      else if (kinds[page] !== TREE) places[page] = plain[kinds[page]] || 0;
      else {
        let place = nodes.get(holders[page]);
        if (place === undefined) {
          place = PAINTS.indexOf(accountOf(track, tables, pool, TREE, holders[page]));
          nodes.set(holders[page], place);
        }
        places[page] = place;
      }
    }
    return places;
  }

  paintSquares(pen) {
    const colours = PAINTS.map(colour), accounts = this.accounts(), edge = this.cell - 1;
    pen.strokeStyle = colour("stroke");
    pen.lineWidth = 1;
    for (let page = 0; page < this.size; page++) {
      const x = page % this.columns * this.cell, y = Math.floor(page / this.columns) * this.cell;
      pen.fillStyle = colours[accounts[page]];
      pen.fillRect(x, y, edge, edge);
      if (accounts[page] < STACK.length) continue;
      pen.beginPath();
      pen.moveTo(x, y + edge);
      pen.lineTo(x + edge, y);
      pen.stroke();
    }
  }

  // A pool of many pages: a pixel each, drawn larger.
  paintDots(pen) {
    const colours = PAINTS.map(name => pixelOf(colour(name))), accounts = this.accounts();
    const rows = Math.ceil(this.size / this.columns), image = new ImageData(this.columns, rows);
    const pixels = new Uint32Array(image.data.buffer);
    for (let page = 0; page < this.size; page++) pixels[page] = colours[accounts[page]];
    const small = document.createElement("canvas");
    small.width = this.columns;
    small.height = rows;
    small.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.drawImage(small, 0, 0, this.columns * this.cell, rows * this.cell);
  }

  ring(pen, page) {
    pen.strokeRect(page % this.columns * this.cell, Math.floor(page / this.columns) * this.cell, this.cell - 1, this.cell - 1);
  }
}

// A colour as `#rrggbb` in the order of bytes of an image on machines of today.
function pixelOf(text) {
  const [red, green, blue] = [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
  return (255 << 24 | blue << 16 | green << 8 | red) >>> 0;
}

function canvasOf(canvas, width, height) {
  const dense = Math.min(2, window.devicePixelRatio || 1);
  const wide = Math.max(1, Math.round(width * dense)), high = Math.max(1, Math.round(height * dense));
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  pen.clearRect(0, 0, width, height);
  return pen;
}
