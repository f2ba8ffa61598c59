// The edges of boxes, and round numbers for their ticks.
import { cloud, layer } from "./gl.js";

const CORNER = `
const int ENDS[24] = int[24](0,1,2,3,4,5,6,7, 0,2,1,3,4,6,5,7, 0,4,1,5,2,6,3,7);
vec3 corner() {
  int k = ENDS[gl_VertexID];
  return vec3(k & 1, (k >> 1) & 1, k >> 2);
}`;

const VERTEX = `${CORNER}
void main() { gl_Position = seen(origin + extent * corner()); }`;

// Many, in the box of a frame: the deeper, the fainter.
const MANY = `${CORNER}
layout(location=0) in vec4 low;
layout(location=1) in vec4 high;
uniform vec4 edges;
out vec4 colour;
void main() {
  gl_Position = seen(origin + extent * mix(low.xyz, high.xyz, corner()));
  colour = vec4(edges.rgb, mix(0.9, 0.3, low.w));
}`;

const FRAGMENT = (kind) => `
${kind} vec4 colour;
void main() { ink = vec4(colour.rgb * colour.a, colour.a); }`;

export function lines(gl) {
  const { draw } = layer(gl, VERTEX, FRAGMENT("uniform"));
  return {
    draw: (look, box) => draw(look, { ...look.box(box), colour: look.edges }, "over",
      () => gl.drawArrays(gl.LINES, 0, 24)),
  };
}

export function boxes(gl) {
  const rows = cloud(gl, MANY, FRAGMENT("in"), [[0, 4, 0], [1, 4, 8]], 1);
  const draw = (look, frame) => rows.draw(look, { ...look.box(frame), edges: look.edges }, "over",
    () => gl.drawArraysInstanced(gl.LINES, 0, 24, frame.count));
  return { set: rows.set, draw };
}

// About `wanted` round numbers between two others.
export function ticks(low, high, wanted = 4) {
  const rough = Math.abs(high - low) / wanted;
  if (!(rough > 0) || !isFinite(rough)) return [];
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  const first = Math.ceil(Math.min(low, high) / step - 1e-9);
  const last = Math.floor(Math.max(low, high) / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, k) => +((first + k) * step).toPrecision(12));
}

// A number to be read: four digits, a real minus.
export function digits(x, most = 4) {
  if (typeof x !== "number") return String(x);
  if (Number.isInteger(x) && Math.abs(x) < 1e7) return grouped(x);
  const size = Math.abs(x);
  const text = size !== 0 && (size < 1e-3 || size >= 1e6) ? x.toExponential(most - 2)
    : String(+x.toPrecision(most));
  return text.replace("e+", "e").replaceAll("-", "−");
}

export function grouped(n) {
  return String(n).replace(/\B(?=(\d{3})+$)/g, "\u202f").replace("-", "−");
}
