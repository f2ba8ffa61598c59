// Points: round sprites out of 8 bytes each, as they came over the wire.
import { cloud } from "./gl.js";

const VERTEX = `
layout(location=0) in vec4 place;
uniform float size, near, largest, massive;
out vec3 colour;
out float pixels;
void main() {
  gl_Position = seen(origin + place.xyz * extent);
  float wanted = size * mix(1.0, 0.5 + 1.5 * place.w, massive) * near / max(gl_Position.w, 1e-30);
  pixels = clamp(wanted, 1.0, largest);
  gl_PointSize = pixels;
  colour = shade(place.w);
}`;

const FRAGMENT = `
in vec3 colour;
in float pixels;
uniform float glow, opacity;
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

export function points(gl) {
  const rows = cloud(gl, VERTEX, FRAGMENT, [[0, 4, 0]], 0);
  const [, largest] = gl.getParameter(gl.ALIASED_POINT_SIZE_RANGE);
  const draw = (look, frame) => {
    const glow = look.style === "glow";
    const values = {
      ...look.box(frame), largest, size: look.size * look.pixels, near: look.distance, glow,
      opacity: look.opacity, massive: look.massive,
    };
    // opaque points have smooth rims by the samples of a pixel
    if (!glow) gl.enable(gl.SAMPLE_ALPHA_TO_COVERAGE);
    rows.draw(look, values, glow && (look.dark ? "add" : "over"),
      () => gl.drawArrays(gl.POINTS, 0, frame.count));
    gl.disable(gl.SAMPLE_ALPHA_TO_COVERAGE);
  };
  return { set: rows.set, draw };
}
