// The feed: frames out of bytes, messages, credits, and a connection that is taken up again.
import { BACK_OFF, CLOSED, FLAGS, GONE, HEADER, HEADER_BYTES, KINDS, MAGIC, PATH, STRIDES }
  from "./table.js";

const READ = {
  B: ["getUint8", 1], I: ["getUint32", 4], i: ["getInt32", 4], f: ["getFloat32", 4],
  d: ["getFloat64", 8], Q: ["getBigUint64", 8],
};
const NAMES = Object.keys(KINDS);

function header(view) {
  const found = {};
  for (const [name, code, at, count] of HEADER) {
    const [read, size] = READ[code];
    const one = (k) => Number(view[read](at + k * size, true));
    found[name] = count === 1 ? one(0) : Array.from({ length: count }, (_, k) => one(k));
  }
  return found;
}

// A frame: its header, and `body`, the bytes after it. Throws why it cannot be read.
export function decode(buffer) {
  if (buffer.byteLength < HEADER_BYTES) throw new Error(`a frame of ${buffer.byteLength} bytes`);
  const bytes = new Uint8Array(buffer);
  const magic = String.fromCharCode(...bytes.subarray(0, 4));
  if (magic !== MAGIC) throw new Error(`a frame that begins with ${magic} instead of ${MAGIC}`);
  const frame = header(new DataView(buffer));
  frame.kind = NAMES[frame.kind];
  if (!frame.kind) throw new Error("a frame of an unknown kind");
  frame.body = bytes.subarray(HEADER_BYTES);
  for (const [name, bit] of Object.entries(FLAGS)) frame[name] = (frame.flags & bit) !== 0;
  if (![...frame.origin, ...frame.extent].every(isFinite))
    throw new Error("a frame whose box is not finite");
  const wanted = shape(frame);
  if (frame.body.byteLength < wanted)
    throw new Error(`${frame.kind}: ${frame.body.byteLength} bytes where ${wanted} were said`);
  return frame;
}

// Sets what the kind of a frame adds; the bytes that its body has.
function shape(frame) {
  const { kind, first: width, total: height, count: depth } = frame;
  if (kind in STRIDES) {
    frame.stride = kind === "suffix" ? frame.components : STRIDES[kind];
    return depth * frame.stride;
  }
  Object.assign(frame, { width, height, depth });
  if (kind === "slice") {
    const axis = frame.extent.indexOf(0);
    frame.axis = axis < 0 ? 2 : axis;
    return width * height;
  }
  return kind === "volume" ? width * height * depth : 0;
}

// Rows that a frame left out, behind it: a frame of all that is there by now.
export function extended(frame, suffix) {
  if (suffix.first !== frame.count || suffix.stride !== frame.stride) return frame;
  const size = suffix.count * suffix.stride;
  const body = new Uint8Array(frame.body.byteLength + size);
  body.set(frame.body);
  body.set(suffix.body.subarray(0, size), frame.body.byteLength);
  return { ...frame, body, count: frame.count + suffix.count };
}

// Calls on.frame(frame), on.text(message), on.link(state, words) with the states
// "opening", "open", "lost", "refused".
export class Feed {
  constructor(on) {
    this.on = on;
    this.tries = this.idle = 0;
    this.over = false; // the run has ended: nobody is there any more
    this.later = {};
    this.hidden = document.hidden;
    document.addEventListener("visibilitychange", () => this.visible(!document.hidden));
    addEventListener("online", () => this.socket.readyState > 1 && this.again(0));
    addEventListener("hashchange", () => this.again(0));
    // what was lost on the way is made good
    setInterval(() => this.idle++ > 0 && !this.hidden && this.send({ do: "credit", n: 2 }), 2000);
    this.open();
  }

  open() {
    this.on.link("opening", "connecting");
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${PATH}`);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    const token = new URLSearchParams(location.hash.slice(1)).get("t") ?? "";
    socket.onopen = () => this.send({ do: "hello", token });
    socket.onmessage = ({ data }) => this.take(data, socket);
    socket.onclose = ({ code }) => socket === this.socket && this.closed(code);
  }

  take(data, socket) {
    if (socket !== this.socket) return;
    try {
      if (typeof data === "string") this.hear(JSON.parse(data));
      else {
        const begun = performance.now();
        this.idle = 0;
        const frame = decode(data);
        frame.decode = performance.now() - begun;
        this.on.frame(frame);
      }
    } catch (error) {
      this.on.text({ is: "error", text: `The server sent ${error.message}.` });
    }
  }

  hear(message) {
    if (message.is === "welcome") {
      this.tries = 0;
      this.on.link("open", "connected");
    }
    this.on.text(message);
    if (message.is === "welcome" && !this.hidden) this.send({ do: "credit", n: 2 });
  }

  // After a frame was drawn, or another one took its place: one more may come.
  ack(frame, draw, queue) {
    const { sequence, decode: spent } = frame;
    if (!this.hidden) this.send({ do: "ack", sequence, decode: spent, draw, queue });
  }

  visible(seen) {
    this.hidden = !seen;
    this.send({ do: "credit", n: seen ? 2 : 0 });
    if (seen && this.socket.readyState > 1) this.again(0);
  }

  send(message) {
    if (this.socket.readyState === 1) this.socket.send(JSON.stringify(message));
  }

  // The last of many, every 50 ms: sliders say more than anyone wants to hear.
  soon(message, wait = 50) {
    const waits = message.do in this.later;
    this.later[message.do] = message;
    if (waits) return;
    setTimeout(() => {
      this.send(this.later[message.do]);
      delete this.later[message.do];
    }, wait);
  }

  closed(code) {
    if (this.over) return;
    // what the run has said last may be behind a frame that was still on its way
    if (code === GONE) return this.on.text({ is: "state", ended: true });
    if (code in CLOSED) {
      this.on.link("refused", CLOSED[code]);
      return;
    }
    const wait = Math.min(BACK_OFF[1], BACK_OFF[0] * 2 ** this.tries++);
    this.on.link("lost", "lost, trying again");
    this.again(wait * (0.75 + Math.random() / 2));
  }

  again(wait) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      if (this.socket.readyState < 2) {
        const old = this.socket;
        this.socket = null;
        old.close();
      }
      this.open();
    }, wait);
  }
}
