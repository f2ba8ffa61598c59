// Points: round sprites out of 8 bytes each, as they came over the wire.
import { Ring, attributes, program, uniforms } from "./gl.js";

const VERTEX = `
layout(location=0) in vec4 place;
uniform mat4 view, projection;
uniform vec3 origin, extent;
uniform float size, near, largest, massive;
out vec3 colour;
out float pixels;
void main() {
  vec4 seen = view * vec4(origin + place.xyz * extent, 1.0);
  gl_Position = projection * seen;
  float wanted = size * mix(1.0, 0.5 + 1.5 * place.w, massive) * near / max(-seen.z, 1e-30);
  pixels = clamp(wanted, 1.0, largest);
  gl_PointSize = pixels;
  colour = shade(place.w);
}`;

const FRAGMENT = `
in vec3 colour;
in float pixels;
uniform float glow, opacity;
out vec4 ink;
void main() {
  float r = 2.0 * length(gl_PointCoord - 0.5);
  if (glow > 0.5) {
    float a = opacity * (pixels < 2.0 ? 1.0 : exp(-3.0 * r * r) * step(r, 1.0));
    ink = vec4(colour * a, a);
  } else {
    float round = pixels > 4.0 ? 0.62 + 0.38 * sqrt(max(0.0, 1.0 - r * r)) : 1.0;
    float cover = pixels < 2.0 ? 1.0 : clamp((1.0 - r) * 0.5 * pixels + 0.5, 0.0, 1.0);
    if (cover < 0.1) discard;
    ink = vec4(colour * round, cover);
  }
}`;

export class Points {
  constructor(gl) {
    this.gl = gl;
    this.program = program(gl, VERTEX, FRAGMENT);
    this.ring = new Ring(gl);
    this.array = gl.createVertexArray();
    this.largest = gl.getParameter(gl.ALIASED_POINT_SIZE_RANGE)[1];
    this.frame = null;
  }

  set(frame) {
    const { gl } = this;
    const buffer = this.ring.put(frame.body);
    gl.bindVertexArray(this.array);
    attributes(gl, buffer, frame.stride, [[0, 4, 0]]);
    gl.bindVertexArray(null);
    this.frame = frame;
  }

  draw(look) {
    const { gl, frame } = this;
    const glow = look.style === "glow";
    blending(gl, glow ? (look.dark ? "add" : "over") : "solid");
    uniforms(gl, this.program, {
      ...look.matrices, ...look.box(frame), map: { int: 0 }, largest: this.largest,
      size: look.size * look.pixels, near: look.distance, glow: glow ? 1 : 0,
      opacity: look.opacity, massive: look.massive ? 1 : 0,
    });
    // opaque points have smooth rims by the samples of a pixel
    if (!glow) gl.enable(gl.SAMPLE_ALPHA_TO_COVERAGE);
    gl.bindVertexArray(this.array);
    gl.drawArrays(gl.POINTS, 0, frame.count);
    gl.bindVertexArray(null);
    gl.disable(gl.SAMPLE_ALPHA_TO_COVERAGE);
    blending(gl, "solid");
  }
}

// How what is drawn meets what is there. Colours are multiplied by their opacity already.
export function blending(gl, how) {
  if (how === "solid") {
    gl.disable(gl.BLEND);
    gl.depthMask(true);
    return;
  }
  gl.enable(gl.BLEND);
  gl.depthMask(false);
  gl.blendFunc(gl.ONE, how === "add" ? gl.ONE : gl.ONE_MINUS_SRC_ALPHA);
}
