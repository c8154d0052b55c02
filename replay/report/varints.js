// A rank's data out of the page: base64, gzip, a head in JSON, columns of varints. See bundle.py and packet.py.

class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  unsigned() {
    const bytes = this.bytes;
    let value = 0, scale = 1, byte = 0;
    do {
      byte = bytes[this.at++];
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte > 127);
    return value;
  }

  signed() {
    const value = this.unsigned();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }
}

function bytesOf(text) {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < binary.length; at++) bytes[at] = binary.charCodeAt(at);
  return bytes;
}

async function unzipped(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function unpacked(text) {
  const raw = await unzipped(bytesOf(text));
  const size = new DataView(raw.buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + size)));
  const columns = {};
  for (const [name, [at, length]] of Object.entries(head.columns)) {
    columns[name] = raw.subarray(4 + size + at, 4 + size + at + length);
  }
  return { head, columns };
}

function numbersIn(bytes, count, deltas) {
  const reader = new Reader(bytes), numbers = new Float64Array(count);
  let before = 0;
  for (let place = 0; place < count; place++) {
    before = (deltas ? before : 0) + reader.signed();
    numbers[place] = before;
  }
  return numbers;
}
