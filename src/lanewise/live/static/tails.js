// Tails: lines from frame to frame through buffers that are kept; nothing more is sent for them.
import { attributes, fill, layer } from "./gl.js";

export const LONGEST = 64;
const MOST = 20000; // points with a tail: the first of a frame are a fair sample of it

const VERTEX = `
layout(location=0) in vec4 before;
layout(location=1) in vec4 after;
uniform vec3 originAfter, extentAfter;
uniform float fade;
out vec4 colour;
void main() {
  vec3 a = origin + before.xyz * extent, b = originAfter + after.xyz * extentAfter;
  // what leaves a periodic box on one side enters on the other: no line across
  bool jump = any(greaterThan(abs(b - a), 0.45 * max(extent, extentAfter)));
  gl_Position = seen(gl_VertexID == 0 || jump ? a : b);
  colour = vec4(shade(after.w) * fade, fade);
}`;

const FRAGMENT = `
in vec4 colour;
void main() { ink = colour; }`;

export function tails(gl) {
  const { draw } = layer(gl, VERTEX, FRAGMENT);
  const kept = []; // from old to new: {buffer, room, frame, count}
  const free = [];
  const clear = () => free.push(...kept.splice(0));

  // A frame of the same rows goes on; others, and those from before, begin anew.
  const add = (frame, length) => {
    const last = kept.at(-1)?.frame;
    if (last && frame.sequence === last.sequence) return;
    if (last && (frame.order !== last.order || frame.step < last.step)) clear();
    const count = Math.min(frame.count, MOST);
    const slot = free.pop() ?? {};
    fill(gl, slot, frame.body.subarray(0, count * frame.stride));
    kept.push({ ...slot, frame, count });
    while (kept.length > length + 1) free.push(kept.shift());
  };

  const all = (look) => {
    for (let k = 1; k < kept.length; k++) {
      const [a, b] = [kept[k - 1], kept[k]];
      const after = look.box(b.frame);
      const values = {
        ...look.box(a.frame), originAfter: after.origin, extentAfter: after.extent,
        fade: (0.85 * k) / kept.length,
      };
      draw(look, values, "over", () => {
        attributes(gl, a.buffer, a.frame.stride, [[0, 4, 0]], 1);
        attributes(gl, b.buffer, b.frame.stride, [[1, 4, 0]], 1);
        gl.drawArraysInstanced(gl.LINES, 0, 2, Math.min(a.count, b.count));
      });
    }
  };
  return { clear, add, draw: all };
}
