// What is drawn: the newest frame of each kind, in layers. Frames wait here for the next picture.
import { arrows } from "./arrows.js";
import { LENS, dot, minus } from "./camera.js";
import { texture } from "./gl.js";
import { boxes, lines } from "./lines.js";
import { points } from "./points.js";
import { extended } from "./protocol.js";
import { slice } from "./slice.js";
import { MAPS } from "./table.js";
import { LONGEST, tails } from "./tails.js";
import { volume } from "./volume.js";

const OPTIONS = { antialias: true, alpha: false, powerPreference: "high-performance" };
const CLOUDS = ["points", "arrows"];

// 256 colours of a map, of 4 bytes each.
export function palette(name, reversed = false) {
  const stops = [...atob(MAPS[name] ?? MAPS.viridis)].map((c) => c.charCodeAt());
  const last = stops.length / 3 - 1;
  const made = new Uint8Array(1024);
  for (let k = 0; k < 256; k++) {
    const place = ((reversed ? 255 - k : k) / 255) * last;
    const j = Math.min(Math.floor(place), last - 1);
    for (let c = 0; c < 3; c++) {
      const [a, b] = [stops[3 * j + c], stops[3 * j + 3 + c]];
      made[4 * k + c] = Math.round(a + (b - a) * (place - j));
    }
    made[4 * k + 3] = 255;
  }
  return made;
}

const LAYERS = { volume, slice, points, arrows, tails, lines, boxes };

export class Scene {
  constructor(canvas) {
    this.gl = canvas.getContext("webgl2", OPTIONS);
    if (!this.gl) throw new Error("no WebGL2");
    this.latest = {}; // by kind: what a lost context is restored from
    this.waiting = {};
    this.dropped = [];
    this.map = "";
    this.build();
  }

  build() {
    const { gl } = this;
    this.layers = {};
    this.palette = texture(gl, gl.TEXTURE_2D, gl.LINEAR);
    this.map = "";
    for (const kind of Object.keys(this.latest)) this.waiting[kind] ??= this.latest[kind];
  }

  // Made when first drawn, as each compiles a program.
  layer(name) {
    return (this.layers[name] ??= LAYERS[name](this.gl));
  }

  take(frame) {
    let kind = frame.kind;
    if (kind === "suffix") {
      const known = { ...this.latest, ...this.waiting };
      kind = CLOUDS.find((k) => known[k]);
      if (!kind) return this.dropped.push(frame);
      const base = known[kind];
      const { sequence, decode } = frame;
      frame = { ...extended(base, frame), sequence, decode, words: null, tight: null };
    }
    if (this.waiting[kind]) this.dropped.push(this.waiting[kind]);
    this.waiting[kind] = frame;
    if (CLOUDS.includes(kind)) delete this.latest[CLOUDS.find((k) => k !== kind)];
  }

  // Moves what waits to the GPU; the frames that may be acknowledged.
  upload(settings) {
    const done = this.dropped.splice(0);
    for (const [kind, frame] of Object.entries(this.waiting)) {
      this.layer(kind).set(frame);
      this.latest[kind] = frame;
      if (CLOUDS.includes(kind)) {
        if (settings.tails) this.layer("tails").add(frame, Math.min(settings.tails, LONGEST));
        else this.layers.tails?.clear();
      }
      done.push(frame);
    }
    this.waiting = {};
    return done;
  }

  cloud() {
    return this.latest.points ?? this.latest.arrows;
  }

  seen() {
    return this.cloud() ?? this.latest.slice ?? this.latest.volume;
  }

  // [origin, extent] of what is there, of a cloud nearly all of it; kept while it is about right.
  bounds() {
    const cloud = this.cloud();
    const frame = this.latest.volume ?? this.latest.slice;
    if (!cloud?.count) return frame ? [frame.origin, frame.extent] : [[-1, -1, -1], [2, 2, 2]];
    const [low, size] = (cloud.tight ??= tight(cloud));
    const [first, kept] = this.kept ?? [low, [0, 0, 0]];
    const fits = low.every((x, i) => x >= first[i] && x + size[i] <= first[i] + kept[i]);
    if (!this.kept || !fits || Math.max(...size) < 0.6 * Math.max(...kept)) {
      const room = Math.max(...size) * 0.06;
      this.kept = [low.map((x, i) => (size[i] ? x - room : x)), size.map((x) => x && x + 2 * room)];
    }
    return this.kept;
  }

  draw(look, width, height) {
    const { gl, latest } = this;
    gl.viewport(0, 0, width, height);
    gl.clearColor(...look.background, 1);
    gl.depthMask(true);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.enable(gl.DEPTH_TEST);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    const map = look.map + look.reversed;
    if (this.map !== map) {
      gl.pixelStorei(gl.UNPACK_ALIGNMENT, 4);
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA, 256, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE,
        palette(look.map, look.reversed));
      this.map = map;
    }
    const paint = (name, ...what) => this.layer(name).draw(look, ...what);
    const eyes = look.stereo ? [[-1, [true, false, false]], [1, [false, true, true]]] : [[0, null]];
    for (const [side, mask] of eyes) {
      if (mask) gl.colorMask(...mask, true);
      if (side > 0) gl.clear(gl.DEPTH_BUFFER_BIT);
      look.matrices = look.camera.matrices(look.radius, side * look.camera.distance * 0.02);
      if (look.frameBox) paint("lines", look.frameBox);
      if (latest.slice && look.slices) paint("slice", latest.slice);
      if (latest.arrows) paint("arrows", latest.arrows);
      if (latest.points) paint("points", latest.points);
      if (look.tails) paint("tails");
      if (look.boxes && latest.boxes) paint("boxes", latest.boxes);
      if (latest.volume && look.volume !== "none")
        paint("volume", latest.volume, look.slices && latest.slice);
    }
    gl.colorMask(true, true, true, true);
  }

  // Draws into memory and reads it back, in one task: rows from the top, RGBA.
  read(look, width, height) {
    const { gl } = this;
    const samples = Math.min(4, gl.getParameter(gl.MAX_SAMPLES));
    const buffers = [0, 1, 2].map(() => gl.createRenderbuffer());
    const [many, one] = [gl.createFramebuffer(), gl.createFramebuffer()];
    const attach = (frame, buffer, at, format, n) => {
      gl.bindFramebuffer(gl.FRAMEBUFFER, frame);
      gl.bindRenderbuffer(gl.RENDERBUFFER, buffer);
      gl.renderbufferStorageMultisample(gl.RENDERBUFFER, n, format, width, height);
      gl.framebufferRenderbuffer(gl.FRAMEBUFFER, at, gl.RENDERBUFFER, buffer);
    };
    attach(one, buffers[0], gl.COLOR_ATTACHMENT0, gl.RGBA8, 0);
    attach(many, buffers[1], gl.COLOR_ATTACHMENT0, gl.RGBA8, samples);
    attach(many, buffers[2], gl.DEPTH_ATTACHMENT, gl.DEPTH_COMPONENT24, samples);
    this.draw(look, width, height);
    gl.bindFramebuffer(gl.READ_FRAMEBUFFER, many);
    gl.bindFramebuffer(gl.DRAW_FRAMEBUFFER, one);
    gl.blitFramebuffer(0, 0, width, height, 0, 0, width, height, gl.COLOR_BUFFER_BIT, gl.NEAREST);
    gl.bindFramebuffer(gl.FRAMEBUFFER, one);
    const pixels = new Uint8ClampedArray(4 * width * height);
    gl.readPixels(0, 0, width, height, gl.RGBA, gl.UNSIGNED_BYTE, pixels);
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    for (const buffer of buffers) gl.deleteRenderbuffer(buffer);
    for (const frame of [many, one]) gl.deleteFramebuffer(frame);
    const row = 4 * width;
    const turned = new Uint8ClampedArray(pixels.length);
    for (let y = 0; y < height; y++)
      turned.set(pixels.subarray(y * row, (y + 1) * row), (height - 1 - y) * row);
    for (let k = 3; k < turned.length; k += 4) turned[k] = 255;
    return turned;
  }
}

// Where row k of a cloud is.
export function placeOf(frame, k) {
  const { buffer, byteOffset, byteLength } = frame.body;
  frame.words ??= new Uint16Array(buffer, byteOffset, byteLength >> 1);
  const first = (k * frame.stride) / 2;
  return [0, 1, 2].map(
    (i) => frame.origin[i] + (frame.words[first + i] / 65535) * frame.extent[i]);
}

// The row nearest to (x, y) on the screen, at most 14 pixels away, or -1. Places are
// linear in what was sent, so that a million take milliseconds.
export function nearest(frame, camera, x, y) {
  const far = camera.height / LENS;
  const away = minus(frame.origin, camera.target);
  const { right, up, out } = camera.basis();
  const along = (axis) => [...axis.map((a, i) => (a * frame.extent[i]) / 65535), dot(axis, away)];
  const [r, u, o] = [right, up, out].map(along);
  const [words, stride] = [placeOf(frame, 0) && frame.words, frame.stride / 2];
  let [best, least] = [-1, 14 * 14];
  for (let k = 0, j = 0; k < frame.count; k++, j += stride) {
    const [a, b, c] = [words[j], words[j + 1], words[j + 2]];
    const depth = camera.distance - (o[0] * a + o[1] * b + o[2] * c + o[3]);
    if (depth <= 0) continue;
    const dx = camera.width / 2 + (far * (r[0] * a + r[1] * b + r[2] * c + r[3])) / depth - x;
    const dy = camera.height / 2 - (far * (u[0] * a + u[1] * b + u[2] * c + u[3])) / depth - y;
    const d = dx * dx + dy * dy;
    if (d < least) [least, best] = [d, k];
  }
  return best;
}

function tight(frame) {
  const step = Math.max(1, Math.floor(frame.count / 4000));
  const places = [];
  for (let k = 0; k < frame.count; k += step) places.push(placeOf(frame, k));
  const out = Math.floor(places.length * 0.004);
  const [low, high] = [[], []];
  for (let i = 0; i < 3; i++) {
    const sorted = places.map((p) => p[i]).sort((a, b) => a - b);
    low.push(sorted[out]);
    high.push(sorted[sorted.length - 1 - out]);
  }
  return [low, high.map((x, i) => x - low[i])];
}
